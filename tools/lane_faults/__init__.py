"""Breaks lanes between clients again and again under load, and judges what was heard."""
