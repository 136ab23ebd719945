"""What every peer shares: the bytes of the protocol. Pure."""
