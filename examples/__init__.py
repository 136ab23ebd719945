"""Small programs that show how Weft is used."""
