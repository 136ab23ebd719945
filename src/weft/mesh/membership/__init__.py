"""Which gateways there are, and what they advertise."""
