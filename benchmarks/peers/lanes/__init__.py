"""Messages from client to client, relayed or by a lane, beside libraries that need no broker."""
