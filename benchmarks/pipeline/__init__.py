"""The journal as Spark and others read it: how many messages a second."""
