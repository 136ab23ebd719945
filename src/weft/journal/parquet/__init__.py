"""Sealed segments as Parquet."""
