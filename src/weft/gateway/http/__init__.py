"""The gateway's own pages."""
