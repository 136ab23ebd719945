"""Ten thousand idle connections: what each costs, how fast they come, and who notices."""

import statistics
from operator import truediv

from benchmarks.peers.brokers import PEERS
from benchmarks.running import Figures, Gateway, Load, load, steady_rss_bytes

CONNECTIONS = 10_000
WINDOW = 100
ROUNDS = 9
PACE = {"size": 128, "count": 2000, "rate": 1000, "spin": 1}
_NATS = PEERS["nats29"]


def run() -> Figures:
    """Measure weft, and nats-server beside it if it is installed, in turns."""
    figures = _weft()
    accepts: dict[str, list[float]] = {"weft": []}
    for _ in range(ROUNDS):
        accepts["weft"].append(_weft_rate())
        if _NATS.is_installed:
            accepts.setdefault("nats-server", []).append(_nats_rate())
    figures["accepts_per_s"] = {name: statistics.median(rates) for name, rates in accepts.items()}
    if "nats-server" in accepts:
        ratios = map(truediv, accepts["weft"], accepts["nats-server"])
        figures["accepts_ratio"] = statistics.median(ratios)
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
        ratio, peer = figures["accepts_ratio"], accepts["nats-server"]
        shown[2] += f", {ratio:.2f}× nats-server's {peer:,.0f}/s in the same run"
    return shown


def _shown(pace: Figures) -> str:
    return f"p50 {pace['p50_us']:.0f} µs, p99 {pace['p99_us']:.0f} µs"


def _weft() -> Figures:
    """One gateway with the connections and an empty one beside it, paced in turns."""
    with Gateway() as crowded, Gateway() as empty:
        pids = (crowded.front, crowded.worker())
        load("pace", port=crowded.port, **PACE)
        before = sum(map(steady_rss_bytes, pids))
        idle = Load("connect", port=crowded.port, count=CONNECTIONS, window=WINDOW)
        idle.figures()
        after = sum(map(steady_rss_bytes, pids))
        paces: dict[str, list[Figures]] = {"empty": [], "beside_idle": []}
        for _ in range(ROUNDS):
            paces["empty"].append(load("pace", port=empty.port, **PACE))
            paces["beside_idle"].append(load("pace", port=crowded.port, **PACE))
        idle.end()
    middles = {name: _middle(rounds) for name, rounds in paces.items()}
    return {"bytes_each": (after - before) / CONNECTIONS, **middles}


def _middle(rounds: list[Figures]) -> Figures:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _weft_rate() -> float:
    with Gateway() as gateway:
        return _connect_rate("weft", gateway.port)


def _connect_rate(protocol: str, port: int) -> float:
    figures = load("connect", protocol=protocol, port=port, count=CONNECTIONS, window=WINDOW)
    return float(figures["per_s"])


def _nats_rate() -> float:
    with _NATS.running() as server:
        return _connect_rate("nats", server.port)
