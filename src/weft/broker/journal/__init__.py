"""The broker's part of the journal: batches, acknowledgements, staged messages."""
