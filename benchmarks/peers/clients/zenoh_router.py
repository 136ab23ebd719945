"""A zenoh router on a port of loopback, until standard input ends."""

import sys

from benchmarks.peers.clients.zenoh_python import session

if __name__ == "__main__":
    with session("router", {"listen/endpoints": [f"tcp/127.0.0.1:{sys.argv[1]}"]}):
        print("ready", flush=True)
        sys.stdin.read()
