"""Signed admin commands: validation and distribution."""
