"""Conversations that begin properly and are then bent at random; a seed tells them again."""

import os
import random

import pytest
from tests.attacks.random_attacker import RandomAttacker
from tests.attacks.siege import Siege

SETTINGS = {
    "limits.frame_s": 1.0,
    "limits.greeting_s": 1.0,
    "limits.outbox_bytes": 65_536,
    "limits.outbox_age_s": 1.0,
    "limits.subscriptions": 500,
    "limits.requests": 50,
    "limits.control_burst": 300,
}
CONNECTIONS = 2000


@pytest.mark.req("MM-10")
def test_random_attacks_harm_nobody_but_the_attackers(siege: Siege) -> None:
    seed = int(os.environ.get("ATTACK_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"to see this again: ATTACK_SEED={seed}")
    with siege.bystander.talking():
        RandomAttacker(siege.port, seed).attack(CONNECTIONS)
