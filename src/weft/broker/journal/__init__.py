"""The broker's side of the journal: batches, acknowledgements, staged messages."""
