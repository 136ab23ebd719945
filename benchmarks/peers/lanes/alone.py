"""One process of a measurement: `python -m … MODULE publish|receive PART`."""

import importlib
import sys

import msgspec

from benchmarks.peers.lanes.part import Part, say

if __name__ == "__main__":
    module, role, part = sys.argv[1:]
    act = getattr(importlib.import_module(f"benchmarks.peers.lanes.{module}"), role)
    say(act(msgspec.json.decode(part, type=Part)))
