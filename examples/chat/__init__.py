"""Web pages that chat, and a Python service that answers them: `python -m examples.chat`."""
