"""Which gateway owns which channel: votes and leases."""
