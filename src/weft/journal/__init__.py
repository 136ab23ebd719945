"""What was said, kept: segments of checksummed blocks, sealed to Parquet."""
