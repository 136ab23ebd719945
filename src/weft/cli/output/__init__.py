"""Tables, messages and progress on the terminal."""
