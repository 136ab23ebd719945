"""The Bayeux protocol."""
