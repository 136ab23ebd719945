"""Who guesses passwords of channels learns nothing, waits longer each time, and harms nobody."""

import asyncio
import ssl
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.broker.locksmith import record
from tests.broker.talk import SECOND_NS, Guest, House, ask, bodies, message, subscribe
from tests.gateway.channel_talk import CHESS, PASSWORD, Caller, Place, keys, proof_of
from tests.gateway.meshes import LIMIT_S, SERVICE
from tests.journeys.raw import Raw, fields

from weft.errors import TooManyTries
from weft.gateway.config.settings import Tls
from weft.gateway.requests import password_throttle
from weft.gateway.requests.channels import CHALLENGE_NS, CHALLENGES_MAX, ChannelDesk
from weft.gateway.requests.password_throttle import CHANNEL_FREE, FORGET_S, PLACE_FREE, SPACING_S
from weft.transports.loop.turn import Turn
from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message

WRONG = "wrong"
JUDGES = {"channels.py", "password_proof.py", "password_throttle.py"}
PLAYER = {right: [">"] for right in ("publish", "subscribe")}


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no wait end while a test runs, however busy the machine is."""
    monkeypatch.setattr(password_throttle, "_S", 1000 * SECOND_NS)


async def guessed(caller: Caller, times: int, name: str = CHESS) -> None:
    """Guess wrong so often."""
    for _ in range(times):
        assert type(await caller.guess(WRONG, name)).__name__ == "WrongPassword"


@pytest.mark.req("RLY-14")
async def test_a_wrong_password_and_no_such_channel_are_told_in_the_same_words() -> None:
    async with Place() as place:
        alice, mallory = await place.caller(), await place.caller()
        await alice.open(**keys())
        told: list[tuple[str, int, str]] = []
        for name in (CHESS, "games.none"):
            first = await mallory.ask("join", name=name)
            assert (list(first), len(first["challenge"])) == (["challenge"], 32)
            error = await mallory.error("prove", **proof_of(first["challenge"], WRONG, name))
            told.append((type(error).__name__, error.number, str(error)))
        assert told[0] == told[1]
        assert told[0][0] == "WrongPassword"


@pytest.mark.req("RLY-14")
async def test_a_channel_without_a_password_takes_no_proof() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        challenge = (await bob.ask("join", name=CHESS))["challenge"]
        channel = await alice.open()
        assert await bob.refused("prove", **proof_of(challenge)) == "WrongPassword"
        assert await bob.refused("leave", id=channel) == "NotAMember"


@pytest.mark.req("RLY-14")
@pytest.mark.usefixtures("endless")
async def test_no_such_channel_counts_as_a_try_as_well() -> None:
    async with Place() as place:
        mallory = await place.caller()
        await guessed(mallory, PLACE_FREE, "games.none")
        assert type(await mallory.guess(WRONG, "games.none")).__name__ == "TooManyTries"


@pytest.mark.req("RLY-14")
async def test_a_challenge_is_good_once() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open(**keys())
        about = proof_of((await bob.ask("join", name=CHESS))["challenge"])
        channel = (await bob.ask("prove", **about))["id"]
        await bob.ask("leave", id=channel)
        assert await bob.refused("prove", **about) == "BadOption"
        challenge = (await bob.ask("join", name=CHESS))["challenge"]
        assert await bob.refused("prove", **proof_of(challenge, WRONG)) == "WrongPassword"
        assert await bob.refused("prove", **proof_of(challenge)) == "BadOption"


@pytest.mark.req("RLY-14")
async def test_a_challenge_is_good_on_its_own_connection_and_for_its_own_name() -> None:
    async with Place() as place:
        alice, bob, mallory = [await place.caller() for _ in range(3)]
        await alice.open(**keys())
        await alice.open("games.go", **keys(name="games.go"))
        about = proof_of((await bob.ask("join", name=CHESS))["challenge"])
        # Whoever overhears a proof has no use for it.
        assert await mallory.refused("prove", **about) == "BadOption"
        assert (await bob.ask("prove", **about))["name"] == CHESS
        challenge = (await bob.ask("join", name=CHESS))["challenge"]
        assert await bob.refused("prove", **proof_of(challenge, name="games.go")) == "BadOption"


async def test_challenges_that_wait_are_few_and_others_have_their_own() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open(**keys())
        others = (await alice.ask("join", name=CHESS))["challenge"]
        given = [await bob.ask("join", name=CHESS) for _ in range(CHALLENGES_MAX + 1)]
        # The first gave way to the last.
        about = [proof_of(each["challenge"]) for each in given]
        assert await bob.refused("prove", **about[0]) == "BadOption"
        assert (await bob.ask("prove", **about[1]))["name"] == CHESS
        assert (await alice.ask("prove", **proof_of(others)))["name"] == CHESS


@pytest.mark.req("RLY-14")
@pytest.mark.usefixtures("endless")
async def test_too_many_tries_by_one_key_keep_out_that_key_alone(tmp_path: Path) -> None:
    records = [record(name, "client", **PLAYER) for name in ("alice", "bob", "mallory")]
    async with Place(tmp_path, *records) as place:
        alice, bob = await place.caller(key="alice"), await place.caller(key="bob")
        mallory, again = await place.caller(key="mallory"), await place.caller(key="mallory")
        await alice.open(**keys())
        challenge = (await again.ask("join", name=CHESS))["challenge"]
        await guessed(mallory, PLACE_FREE)
        error = await mallory.guess(WRONG)
        assert type(error).__name__ == "TooManyTries"
        assert "try again in 1 s" in str(error)
        # Over another connection, and with the right password, too.
        assert await again.refused("prove", **proof_of(challenge)) == "TooManyTries"
        # All of them are at the same address.
        assert (await bob.prove())["name"] == CHESS
        # The connection goes on, and everything else does.
        assert await mallory.open("games.mine")
        assert mallory.client.is_connected


class ByHand:
    """A connection from where, or with a greeting that, the library does not offer."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    async def ask(self, question: str, **about: Any) -> dict[str, Any]:
        body = Message.from_dict(about).encode()
        subject = f"_WEFT.ask.channel.{question}".encode()
        (answer,) = await self._raw.say(
            encode(Kind.MESSAGE, subject, body, self._raw.inbox + b".1", Flag.REQUEST)
        )
        return fields(answer)


@pytest.mark.req("RLY-14")
@pytest.mark.usefixtures("endless")
async def test_without_keys_too_many_tries_keep_out_that_connection_alone() -> None:
    async with Place() as place:
        alice, bob, mallory = [await place.caller() for _ in range(3)]
        await alice.open(**keys())
        await guessed(mallory, PLACE_FREE)
        assert type(await mallory.guess(PASSWORD)).__name__ == "TooManyTries"
        # It is at the same address.
        assert (await bob.prove())["name"] == CHESS


@pytest.mark.req("RLY-14")
async def test_without_keys_a_burst_of_wrong_passwords_does_not_lock_the_channel() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open(**keys())
        for _ in range(CHANNEL_FREE // PLACE_FREE):
            await guessed(await place.caller(), PLACE_FREE)
        async with asyncio.timeout(LIMIT_S):
            while (name := await name_or_refusal(bob)) != CHESS:
                assert "try again in 0." in name
                await asyncio.sleep(0.01)


async def name_or_refusal(caller: Caller) -> str:
    """What the right password gets: the name of the channel, or why its caller has to wait."""
    try:
        return str((await caller.prove())["name"])
    except TooManyTries as error:
        return str(error)


@pytest.mark.req("RLY-14")
@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("way", ["ws://", "wss://"])
async def test_who_guesses_by_a_door_that_tells_no_address_keeps_out_nobody_else(
    way: str, tls: Tls
) -> None:
    is_encrypted = way == "wss://"
    trust = ssl.create_default_context(cafile=tls.cert) if is_encrypted else None
    async with Place(tls=tls if is_encrypted else Tls()) as place:
        alice, bob, mallory = [await place.caller(way=way, tls=trust) for _ in range(3)]
        await alice.open(**keys())
        await guessed(mallory, PLACE_FREE)
        assert type(await mallory.guess(PASSWORD)).__name__ == "TooManyTries"
        assert (await bob.prove())["name"] == CHESS


# With a clock that is set by hand.


class StillLoop:
    """All that a turn asks of a loop: its turns are ended by hand."""

    def call_soon(self, act: object) -> None:
        pass


class Hall:
    """A desk, and the house that it stands in."""

    def __init__(self) -> None:
        self.house = House(name=SERVICE)
        turn = Turn(self.house.service, StillLoop())  # type: ignore[arg-type]  # see there
        self.desk = ChannelDesk(turn)
        self.owner = self.house.guest()
        assert "number" not in ask(self.owner, "channel.open", name=CHESS, **keys())

    def guest(self) -> Guest:
        """Someone by a door that does not tell from where."""
        return self.house.guest()

    def wait(self, seconds: float) -> None:
        """Let time pass, and the desk see that."""
        self.house.wait(seconds)
        self.desk.tick()


def challenged(guest: Guest) -> bytes:
    challenge = ask(guest, "channel.join", name=CHESS)["challenge"]
    assert isinstance(challenge, bytes)
    return challenge


def proven(guest: Guest, password: str) -> str:
    """What comes of a password: the name of the channel, or of the error."""
    return str(ask(guest, "channel.prove", **proof_of(challenged(guest), password))["name"])


@pytest.mark.req("RLY-14")
def test_a_challenge_is_good_for_so_long_and_no_longer() -> None:
    hall = Hall()
    bob = hall.guest()
    early, late = challenged(bob), challenged(bob)
    hall.house.wait(CHALLENGE_NS / SECOND_NS - 0.001)
    assert ask(bob, "channel.prove", **proof_of(early))["name"] == CHESS
    hall.house.wait(0.001)
    # Also if nobody has swept it away yet.
    assert ask(bob, "channel.prove", **proof_of(late))["name"] == "BadOption"


def test_waits_grow_and_pass_and_are_forgotten_in_the_end() -> None:
    hall = Hall()
    mallory = hall.guest()
    for _ in range(PLACE_FREE):
        assert proven(mallory, WRONG) == "WrongPassword"
    for wait_s in (1, 2, 4, 8, 16, 32, 60, 60):
        assert ask(mallory, "channel.prove", name=CHESS)["name"] == "TooManyTries"
        hall.wait(wait_s)
        assert proven(mallory, WRONG) == "WrongPassword"
    hall.wait(FORGET_S)
    for _ in range(PLACE_FREE):
        assert proven(mallory, WRONG) == "WrongPassword"
    assert ask(mallory, "channel.prove", name=CHESS)["name"] == "TooManyTries"
    assert not mallory.peer.is_over


@pytest.mark.req("RLY-14")
def test_guesses_by_many_connections_at_one_channel_are_spaced_and_other_channels_free() -> None:
    hall = Hall()
    ask(hall.owner, "channel.open", name="games.go", **keys(name="games.go"))
    for _ in range(CHANNEL_FREE):
        assert proven(hall.guest(), WRONG) == "WrongPassword"
    bob = hall.guest()
    assert proven(bob, PASSWORD) == "TooManyTries"
    challenge = ask(bob, "channel.join", name="games.go")["challenge"]
    assert ask(bob, "channel.prove", **proof_of(challenge, name="games.go"))["name"] == "games.go"
    hall.wait(SPACING_S)
    assert proven(bob, PASSWORD) == CHESS


@pytest.mark.req("RLY-14")
def test_nobody_hears_a_channel_whose_password_it_did_not_prove() -> None:
    hall = Hall()
    (key,) = hall.owner.peer.channels
    subject = b"_CHANNEL." + key + b".moves"
    mallory, bob = hall.guest(), hall.guest()
    assert proven(bob, PASSWORD) == CHESS
    assert proven(mallory, WRONG) == "WrongPassword"
    for guest in (mallory, bob):
        guest.say(subscribe(subject, flags=0))
    hall.owner.say(message(subject, b"e4"))
    assert (bodies(mallory.heard()), bodies(bob.heard())) == ([], [b"e4"])


def steps(guest: Guest, name: str) -> list[str]:
    """What a gateway calls to judge a wrong password for a channel."""
    about = proof_of(ask(guest, "channel.join", name=name)["challenge"], WRONG, name)
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).name in JUDGES:
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        told = ask(guest, "channel.prove", **about)
    finally:
        sys.setprofile(None)
    assert told["name"] == "WrongPassword"
    return seen


@pytest.mark.req("RLY-14")
def test_a_wrong_password_and_no_such_channel_take_the_same_steps() -> None:
    hall = Hall()
    taken = steps(hall.guest(), CHESS)
    assert {"is_proven", "sign", "wrong"} <= set(taken)
    assert steps(hall.guest(), "games.none") == taken


def test_nothing_is_left_of_who_is_gone() -> None:
    hall = Hall()
    bob = hall.guest()
    challenged(bob)
    assert proven(bob, PASSWORD) == CHESS
    bob.say(encode(Kind.GOODBYE))
    hall.wait(0.1)
    assert ask(hall.owner, "channel.show", name=CHESS)["members"] == 1
    hall.owner.say(encode(Kind.GOODBYE))
    hall.wait(0.1)
    assert ask(hall.guest(), "channel.list")["channels"] == []
