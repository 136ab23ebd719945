import json

import msgspec
import pytest
from benchmarks.peers.kept.keepers import KEEPERS, UNKEPT

from weft.gateway.config.settings import Settings


@pytest.mark.parametrize(
    ("name", "sync"), [("weft", "ack"), ("weft-interval", "interval"), ("weft-none", "none")]
)
def test_a_gateway_keeps_everything_in_its_own_folder(name: str, sync: str) -> None:
    settings = msgspec.json.decode(KEEPERS[name].config, type=Settings)
    assert settings.data == "{folder}"
    assert settings.journal.patterns == (">",)
    assert settings.journal.sync == sync


def test_one_gateway_keeps_nothing() -> None:
    assert KEEPERS[UNKEPT].config == ""


@pytest.mark.parametrize(("name", "interval"), [("nats-always", "always"), ("nats", "2m")])
def test_a_stream_is_stored_and_synced_as_it_is_said(name: str, interval: str) -> None:
    lines = [line.strip() for line in KEEPERS[name].config.splitlines()]
    assert lines[0] == "jetstream {"
    assert 'store_dir: "{folder}"' in lines
    assert f"sync_interval: {interval}" in lines
    assert lines[-1] == "}"


@pytest.mark.parametrize("sync", ["always", "everysec"])
def test_redis_appends_and_syncs_as_it_is_said(sync: str) -> None:
    arguments = " ".join(KEEPERS[f"redis-{sync}"].arguments)
    assert "--dir {folder}" in arguments
    assert f"--appendonly yes --auto-aof-rewrite-percentage 0 --appendfsync {sync}" in arguments


def test_a_title_tells_variants_of_a_broker_apart() -> None:
    variants = [peer for peer in KEEPERS.values() if peer.protocol == "weft"]
    titles = {peer.facts().title for peer in variants}
    assert len(titles) == len(variants) > 1
    assert f"weft {KEEPERS['weft'].version}, ack" in titles


def test_what_is_told_of_a_gateway_can_be_read_again() -> None:
    assert json.loads(KEEPERS["weft"].facts().config)["journal"]["sync"] == "ack"
