"""Questions about speed and memory, each answered by a file; `make bench` runs them all."""
