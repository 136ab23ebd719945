"""The Python client libraries as their users have them: one module for each, run as a process."""
