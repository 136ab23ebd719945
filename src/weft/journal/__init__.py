"""Journal: durable log of messages in segments of checksummed blocks, sealed to Parquet."""
