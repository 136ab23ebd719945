import dataclasses
from typing import Any

import pytest

from weft.client.options import (
    ConnectOptions,
    GatherLimits,
    GatherOptions,
    Options,
    SubscribeOptions,
    SubscriptionOptions,
    made,
)
from weft.errors import BadOption, BadSubject


@pytest.mark.parametrize(
    ("value", "keywords"),
    [
        (Options, ConnectOptions),
        (SubscriptionOptions, SubscribeOptions),
        (GatherLimits, GatherOptions),
    ],
)
def test_every_option_can_be_given_by_its_keyword(value: type[Any], keywords: type[Any]) -> None:
    assert {each.name for each in dataclasses.fields(value)} == keywords.__annotations__.keys()


def test_options_have_defaults() -> None:
    options = made(Options, {})
    assert (options.service, options.buffer_bytes, options.when_full) == (
        "default",
        8 << 20,
        "block",
    )


def test_a_misspelt_option_gets_the_right_spelling() -> None:
    with pytest.raises(BadOption, match=r"no option 'servise'; did you mean 'service'\?"):
        made(Options, {"servise": "x"})


def test_an_option_like_no_other_gets_all_of_them() -> None:
    with pytest.raises(BadOption, match="no option 'zzz', only count, quiet_s, deadline_s"):
        made(GatherLimits, {"zzz": 1})


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Options, {"when_full": "explode"}, "not one of block, raise, drop"),
        (Options, {"look": "often"}, "look is .often., not one of auto, never"),
        (Options, {"timeout_s": 0}, "timeout_s is 0, and must be more than 0"),
        (Options, {"backoff_cap_s": float("nan")}, "backoff_cap_s is nan"),
        (Options, {"buffer_bytes": -1}, "buffer_bytes is -1"),
        (Options, {"service": "_hidden"}, "service '_hidden' is not 1 to 63 letters"),
        (Options, {"service": ""}, "service ''"),
        (Options, {"service": "x" * 64}, "is not 1 to 63"),
        (SubscriptionOptions, {"policy": "keep"}, "not one of cut, drop_new, drop_old, latest"),
        (SubscriptionOptions, {"queue_bytes": -5}, "queue_bytes is -5"),
        (GatherLimits, {"count": 0}, "count is 0"),
    ],
)
def test_an_impossible_value_is_refused(
    kind: type[object], given: dict[str, object], said: str
) -> None:
    with pytest.raises(BadOption, match=said):
        made(kind, given)


def test_a_name_is_a_subject() -> None:
    with pytest.raises(BadSubject):
        made(Options, {"name": "me.*"})


def test_no_key_may_be_said_as_none() -> None:
    assert not made(Options, {"key": None}).key


@pytest.mark.parametrize("name", ["key", "name", "service", "reachable_at", "region", "timeout_s"])
def test_a_value_of_the_wrong_type_is_an_option_that_cannot_be(name: str) -> None:
    with pytest.raises(BadOption, match=f"^{name} is "):
        made(Options, {name: b"x"})
