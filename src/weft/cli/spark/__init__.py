"""Execution of commands on Spark."""
