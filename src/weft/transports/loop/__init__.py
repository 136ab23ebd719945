"""The event loop's turns: polling, reading and flushing sockets."""
