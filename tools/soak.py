"""Attacks a gateway at random for a long time: it must neither fall, nor leak, nor log a failure.

`python -m tools.soak 600` attacks for ten minutes and prints a line a round. A round that fails
prints its seed, and `ATTACK_SEED=… make test` attacks in the same way once more.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks.bystander import Bystander
from tests.attacks.gateway_process import GatewayProcess, descriptors, eventually, rss_bytes
from tests.attacks.random_attacker import RandomAttacker
from tests.attacks.test_random_attacks import SETTINGS

ROUND = 2000
# What a process may hold more than after its third round, when its caches are full.
GROWTH_BYTES = 16 << 20
_WARM = 3


def soak(seconds: float) -> int:
    """Attack for so long; the exit status that says if all went well."""
    with (
        tempfile.TemporaryDirectory() as folder,
        GatewayProcess(Path(folder), SETTINGS) as gateway,
        Bystander(gateway) as bystander,
    ):
        processes = (gateway.process.pid, gateway.worker())
        held: list[list[int]] = []
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            seed = random.SystemRandom().randrange(1 << 32)
            problem = _round(gateway, bystander, seed)
            held.append([rss_bytes(pid) for pid in processes])
            open_now = [descriptors(pid) for pid in processes]
            print(
                f"{len(held) * ROUND:>10,} connections, seed {seed:>10},"
                f" memory {[each >> 20 for each in held[-1]]} MiB, descriptors {open_now}",
                flush=True,
            )
            if problem or (problem := _growth(held)):
                print(f"soak: ATTACK_SEED={seed}: {problem}", file=sys.stderr)
                return 1
        print(dict(gateway.counts()))
    return 0


def _round(gateway: GatewayProcess, bystander: Bystander, seed: int) -> str:
    """One round of attacks; what is wrong after it, or nothing."""
    worker = gateway.worker()
    with bystander.talking():
        RandomAttacker(gateway.port, seed).attack(ROUND)
    eventually(lambda: gateway.connections() == 2, gateway.status)
    bystander.check()
    if gateway.worker() != worker:
        return f"the worker was started again: {gateway.log}"
    if "Traceback" in gateway.log or " ERROR " in gateway.log:
        return f"a failure was logged: {gateway.log}"
    return ""


def _growth(held: list[list[int]]) -> str:
    if len(held) <= _WARM:
        return ""
    grown = [now - then for now, then in zip(held[-1], held[_WARM - 1], strict=True)]
    if max(grown) > GROWTH_BYTES:
        return f"front and worker have grown by {[each >> 20 for each in grown]} MiB"
    return ""


if __name__ == "__main__":
    sys.exit(soak(float(sys.argv[1])))
