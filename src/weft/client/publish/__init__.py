"""Publishing: encoding, the send buffer, and waiting for space in it."""
