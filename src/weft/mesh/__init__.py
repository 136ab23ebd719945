"""The mesh of gateways as pure code: no clock, sockets or randomness of its own."""
