"""Publishing: encoding and the send buffer."""
