"""Running Spark from commands."""
