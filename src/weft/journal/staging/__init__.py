"""Messages of sinks, staged until they are committed."""
