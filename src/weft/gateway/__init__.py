"""One running node: a front that accepts, a worker for each service, and what operators see."""
