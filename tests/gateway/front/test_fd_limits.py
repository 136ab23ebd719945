import resource
import subprocess
import sys

import pytest

from weft.gateway.config.settings import Settings, Tls
from weft.gateway.front.fd_limits import (
    PER_SERVICE,
    RESERVE,
    ConnectionLimits,
    limit_here,
    limit_of_worker,
    room,
)

TLS = Tls(cert="a.pem", key="a.key")


def test_with_plenty_of_descriptors_the_settings_hold() -> None:
    settings = Settings()
    assert room(settings, 100_000, 100_000) == ConnectionLimits(20_000, 4096)
    assert room(settings, 100_000, None) == ConnectionLimits(20_000, 4096)


def test_a_worker_keeps_a_reserve() -> None:
    assert room(Settings(), 20_000, 20_000).connections == 20_000 - RESERVE


@pytest.mark.parametrize("limit", [64, 256, 1024, 20_000])
@pytest.mark.parametrize("tls", [Tls(), TLS])
def test_inline_everything_fits_into_one_limit(limit: int, tls: Tls) -> None:
    planned = room(Settings(tls=tls), limit, None)
    per_connection, per_pending = (3, 3) if tls.is_on else (1, 1)
    used = planned.connections * per_connection + planned.pending * per_pending
    assert used <= max(limit - RESERVE - PER_SERVICE * 16, 8)
    assert planned.connections > 0
    assert planned.pending > 0


def test_with_tls_the_front_holds_two_for_each_connection() -> None:
    planned = room(Settings(tls=TLS), 20_000, 1_000_000)
    assert 2 * planned.connections + 3 * planned.pending <= 20_000 - RESERVE
    assert planned.connections > 7000


def test_the_limits_are_those_of_this_process() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limit_here() == soft
    assert limit_of_worker() == hard


def test_the_limit_is_raised_as_far_as_it_goes() -> None:
    program = (
        "import resource as r\n"
        "from weft.gateway.front.fd_limits import raise_limit\n"
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, hard))\n"
        "assert raise_limit() == hard == r.getrlimit(r.RLIMIT_NOFILE)[0]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)  # noqa: S603  # ours
