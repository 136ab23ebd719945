"""The brokers that are compared, with what each promises of a message that it acknowledged."""

import json

from benchmarks.peers.brokers import NATS, PEERS, REDIS, Peer

# The one that keeps nothing: what the others take beyond it is the price of keeping.
UNKEPT = "weft-unkept"
# When more wait to be stored it drops what comes; with the bound it comes with, a fifth here.
_JETSTREAM = """\
jetstream {{
    store_dir: "{{folder}}"
    sync_interval: {interval}
    max_buffered_msgs: 100000000
    max_buffered_size: 8GB
}}
"""
_REDIS_LOG = ("--save", "", "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")


def _weft(name: str, sync: str, promise: str, variant: str = "", **others: str) -> Peer:
    config = {"data": "{folder}", "journal": {"patterns": [">"], "sync": sync, **others}}
    settings = f"a journal of everything: {promise}"
    said = variant or sync
    return Peer(name, "weft", "weft", None, settings, config=json.dumps(config), variant=said)


def _nats(name: str, interval: str, promise: str) -> Peer:
    settings = f"JetStream, a stream in files, no bound on what waits for it: {promise}"
    return Peer(
        name,
        "nats-server",
        "nats",
        PEERS["nats215"].program,
        settings,
        (*NATS, "--config", "{folder}/config"),
        _JETSTREAM.format(interval=interval),
        variant=interval,
    )


def _redis(name: str, sync: str, promise: str) -> Peer:
    settings = f"XADD to a stream, append-only file that is never rewritten: {promise}"
    arguments = (*REDIS, *_REDIS_LOG, "--appendfsync", sync)
    program = PEERS["redis"].program
    return Peer(name, "redis", "redis", program, settings, arguments, variant=sync)


KEEPERS = {
    peer.name: peer
    for peer in (
        Peer(UNKEPT, "weft", "weft", None, "no journal: nothing is kept", variant="unkept"),
        _weft("weft", "ack", "synced before it is acknowledged"),
        _weft("weft-interval", "interval", "synced every second"),
        _weft(
            "weft-later",
            "interval",
            "the same, sealed later",
            "interval, sealed later",
            seal="never",
        ),
        _weft("weft-none", "none", "written before it is acknowledged, never synced"),
        _nats("nats-always", "always", "synced before it is acknowledged"),
        _nats("nats", "2m", "synced every two minutes, as it comes"),
        _redis("redis-always", "always", "synced before it is acknowledged"),
        _redis("redis-everysec", "everysec", "synced every second"),
    )
}
