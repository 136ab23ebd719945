"""Jobs that are shipped with Weft, one per file."""
