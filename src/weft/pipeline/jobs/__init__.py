"""The jobs that come with Weft, one in each file."""
