"""Ten thousand idle connections: what each costs, how fast they come, and who notices."""

import shutil
import socket
import statistics
import subprocess
import time

from benchmarks.running import Figures, Gateway, Load, load, steady_rss_bytes

CONNECTIONS = 10_000
WINDOW = 100
ROUNDS = 5
PACE = (128, 4000, 1000)


def run() -> Figures:
    """Measure weft, and nats-server beside it if it is installed, in turns."""
    figures = _weft()
    accepts: dict[str, list[float]] = {"weft": []}
    for _ in range(ROUNDS):
        accepts["weft"].append(_weft_rate())
        if shutil.which("nats-server") is not None:
            accepts.setdefault("nats-server", []).append(_nats_rate())
    figures["accepts_per_s"] = {name: statistics.median(rates) for name, rates in accepts.items()}
    return figures


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    accepts = figures["accepts_per_s"]
    empty, beside = figures["empty"], figures["beside_idle"]
    shown = [
        f"{CONNECTIONS:,} idle connections",
        f"  memory           {figures['bytes_each'] / 1024:.2f} KiB each, in worker and front",
        f"  accepted         {accepts['weft']:,.0f}/s",
        f"  publish→deliver  {_shown(beside)}; on an empty gateway {_shown(empty)}",
    ]
    if "nats-server" in accepts:
        ratio = accepts["weft"] / accepts["nats-server"]
        shown[2] += f", {ratio:.2f}× nats-server's {accepts['nats-server']:,.0f}/s in the same run"
    return shown


def _shown(pace: Figures) -> str:
    return f"p50 {pace['p50_us']:.0f} µs, p99 {pace['p99_us']:.0f} µs"


def _weft() -> Figures:
    with Gateway() as gateway:
        pids = (gateway.front, gateway.worker())
        empty = load("pace", gateway.port, "default", *PACE)
        before = sum(map(steady_rss_bytes, pids))
        idle = Load("connect", "weft", gateway.port, CONNECTIONS, WINDOW)
        idle.figures()
        after = sum(map(steady_rss_bytes, pids))
        beside = load("pace", gateway.port, "default", *PACE)
        idle.end()
    return {
        "bytes_each": (after - before) / CONNECTIONS,
        "empty": empty,
        "beside_idle": beside,
    }


def _weft_rate() -> float:
    with Gateway() as gateway:
        return float(load("connect", "weft", gateway.port, CONNECTIONS, WINDOW)["per_s"])


def _nats_rate() -> float:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = subprocess.Popen(
        ["nats-server", "-a", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        return float(load("connect", "nats", port, CONNECTIONS, WINDOW)["per_s"])
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    ends = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            if time.monotonic() > ends:
                raise
        else:
            return
