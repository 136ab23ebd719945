"""Real clients and a real gateway's core on a made-up clock and network: lanes, judged."""
