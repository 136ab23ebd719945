"""Pages that chat, and a Python service that they ask for quotes: `python -m examples.chat`."""
