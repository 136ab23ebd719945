from pathlib import Path

import msgspec
import pytest
from benchmarks.peers.lanes.ways import WAYS, Way

from weft.gateway.config.settings import Settings

OURS = [way for way in WAYS.values() if way.gateway]


@pytest.mark.parametrize("way", OURS, ids=lambda way: way.name)
def test_only_one_way_encrypts_within_the_machine(way: Way) -> None:
    settings = msgspec.json.decode(way.gateway, type=Settings)
    assert (settings.lanes.encrypt == "always") == (way.name == "weft-sealed")


def test_all_but_the_relayed_way_of_ours_are_lanes() -> None:
    assert {way.name for way in WAYS.values() if not way.is_lane and way.gateway} == {
        "weft-relayed"
    }


@pytest.mark.parametrize(
    "way", [way for way in WAYS.values() if not way.gateway], ids=lambda way: way.name
)
def test_others_meet_at_an_address_of_their_own(way: Way, tmp_path: Path) -> None:
    with way.meeting(tmp_path) as (first, pids), way.meeting(tmp_path) as (second, _):
        assert not pids
        assert "{" not in first
        assert (first == second) == ("{folder}" in way.at)


def test_titles_tell_ways_apart() -> None:
    installed = [way for way in WAYS.values() if way.is_installed]
    assert len({way.facts().title for way in installed}) == len(installed)
