"""Keys, tickets and permissions."""
