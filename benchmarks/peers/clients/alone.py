"""Measures one client in this process: `python -m … MODULE:FUNCTION CASE PORT SECONDS`."""

import importlib
import json
import sys

from benchmarks.peers.clients.driving import Task

if __name__ == "__main__":
    program, case, port, seconds = sys.argv[1:]
    module, _, function = program.partition(":")
    run = getattr(importlib.import_module(f"benchmarks.peers.clients.{module}"), function)
    print(json.dumps(run(Task(case, int(port), float(seconds)))))
