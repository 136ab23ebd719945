"""Direct connections between clients, the gateway's side. Pure."""
