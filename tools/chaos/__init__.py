"""Breaks a mesh of real gateways at random, and judges what its clients heard."""
