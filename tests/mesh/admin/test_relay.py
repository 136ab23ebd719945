"""Commands in a mesh: everybody whom one is for judges it, and is heard of."""

from typing import Any

import pytest
from tests.mesh.gateways import SECOND_NS
from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, identity_of, meshed

from weft.errors import BadOption, NotAllowed, WeftError
from weft.mesh.admin.admin_command import (
    Command,
    CommandOrder,
    Judge,
    SignedCommand,
    TargetAttributes,
    sign,
)
from weft.mesh.admin.relay import COMMANDS_PER_S, DONE, Commanding, CommandOutcome, Tell
from weft.mesh.links.signing import verify
from weft.mesh.protocol import CommandWord, Obeyed, frame_of

ADMIN = identity_of(77)


class Scene:
    """Gateways that obey one administrator, and what each of them was told to do."""

    def __init__(self, count: int = 3) -> None:
        self.net: Net = meshed(count)
        self.obeyed: dict[int, list[str]] = {place: [] for place in self.net.nodes}
        self.rows: list[dict[str, Any]] = []
        self._nonce = 0
        for place, node in self.net.nodes.items():
            judge = Judge("weather", verify, 0)
            judge.admins = {ADMIN.key}
            about = TargetAttributes(
                node.service.gateway, node.node.hex(), "north" if place < 3 else "south"
            )
            commanding = Commanding(node.service, about, judge, self._obeyer(place))
            node.fabric.obey(commanding)

    def signed(self, target: str = "all") -> SignedCommand:
        self._nonce += 1
        order = CommandOrder("weather", target, "status", "x")
        now_ms = self.net[1].service.wall_ns // 1_000_000
        return sign(ADMIN, order, self._nonce.to_bytes(16, "big"), now_ms, 30_000)

    def give(self, signed: SignedCommand, place: int = 1) -> WeftError | None:
        self.rows = []
        problem = self.commanding(place).begin(signed, self.rows.extend)
        self.net[place].flush()
        self.net.carry()
        return problem

    def commanding(self, place: int) -> Commanding:
        found = self.net[place].fabric.commanding
        assert found is not None
        return found

    @property
    def states(self) -> dict[str, str]:
        return {row["name"]: row["state"] for row in self.rows}

    def _obeyer(self, place: int) -> Any:
        def obey(command: Command, tell: Tell) -> None:
            self.obeyed[place].append(f"{command.verb} {command.value}")
            tell(CommandOutcome(DONE, "", {"place": place}))

        return obey


def intruded() -> tuple[Scene, Impostor, Line]:
    """Two gateways that obey, and a member that is linked with the first and will misbehave."""
    scene = Scene(2)
    rogue = Impostor(scene.net)
    line = rogue.join(scene.net[1])
    scene.net.wait(1)
    return scene, rogue, line


@pytest.mark.req("RLY-8")
def test_a_command_reaches_all_and_all_are_heard_of() -> None:
    scene = Scene()
    assert scene.give(scene.signed()) is None
    assert list(scene.obeyed.values()) == [["status x"]] * 3
    assert scene.states == {"gateway-1": "done", "gateway-2": "done", "gateway-3": "done"}
    assert [row["facts"] for row in scene.rows] == [{"place": place} for place in (1, 2, 3)]


@pytest.mark.req("RLY-8")
def test_a_command_is_for_whom_it_names() -> None:
    scene = Scene()
    scene.give(scene.signed("node:gateway-2"))
    assert (scene.obeyed, scene.states) == ({1: [], 2: ["status x"], 3: []}, {"gateway-2": "done"})
    # Others know a gateway by what it advertises of itself.
    scene.give(scene.signed("region:south"), place=3)
    assert scene.states == {"gateway-3": "done"}
    scene.give(scene.signed("node:nobody"))
    assert scene.rows == []


def test_a_name_that_two_gateways_have_is_refused_with_their_ids() -> None:
    scene = Scene(2)
    scene.net.names[3] = "gateway-2"
    scene.net.begin(3)
    scene.net.wait(3)
    problem = scene.give(scene.signed("node:gateway-2"))
    assert isinstance(problem, BadOption)
    ids = [scene.net[place].node.hex() for place in (2, 3)]
    assert "2 gateways are called 'gateway-2'; name one by its id: " in str(problem)
    assert all(f"node:{each} (" in str(problem) for each in ids)
    assert scene.obeyed == {1: [], 2: []}
    assert scene.give(scene.signed(f"node:{ids[0]}")) is None
    assert (scene.obeyed, scene.states) == ({1: [], 2: ["status x"]}, {"gateway-2": "done"})
    problem = scene.give(scene.signed("node:gateway-2"), place=2)
    assert "(the gateway that you asked)" in str(problem)
    # One that cannot be reached does not count: it may have been started again with another key.
    scene.net.kill(3)
    scene.net.wait(5)
    assert scene.give(scene.signed("node:gateway-2")) is None
    assert scene.obeyed[2] == ["status x"] * 2


def test_of_whoever_cannot_be_reached_or_does_not_answer_that_is_told() -> None:
    scene = Scene()
    scene.net.kill(3, is_dark=True)
    scene.give(scene.signed())
    scene.net.now_ns += 5 * SECOND_NS
    scene.net[1].tell_time()
    scene.commanding(1).tick()
    assert scene.states == {"gateway-1": "done", "gateway-2": "done", "gateway-3": "silent"}
    scene.net.wait(5)
    scene.give(scene.signed())
    assert scene.states["gateway-3"] == "unreachable"


@pytest.mark.req("RLY-9")
def test_what_no_administrator_signed_is_refused_where_it_is_given() -> None:
    scene = Scene()
    said, signature = scene.signed()
    problem = scene.give(SignedCommand(said, bytes(64)))
    assert isinstance(problem, NotAllowed)
    assert scene.net[1].refused == {"ForgedCommand": 1}
    assert not any(scene.obeyed.values())
    assert scene.give(SignedCommand(said, signature)) is None
    assert isinstance(scene.give(SignedCommand(said, signature)), NotAllowed)
    assert scene.net[1].refused["ReplayedCommand"] == 1


@pytest.mark.req("RLY-9")
def test_the_word_of_a_gateway_is_not_enough() -> None:
    scene, rogue, line = intruded()
    said, _ = scene.signed()
    forged = CommandWord(1, said, rogue.admission.identity.sign(said))
    line.route(1, frame_of(forged), [rogue.number])
    assert scene.net[1].refused == {"ForgedCommand": 1}
    # What was given at another gateway cannot be given again by who has heard it.
    real = scene.signed("node:gateway-1")
    scene.give(real, place=2)
    assert scene.obeyed[1] == ["status x"]
    line.route(1, frame_of(CommandWord(2, *real)), [rogue.number])
    assert scene.obeyed[1] == ["status x"]
    assert scene.net[1].refused["ReplayedCommand"] == 1
    line.route(1, frame_of(CommandWord(3, *scene.signed("node:gateway-2"))), [rogue.number])
    assert scene.net[1].refused["NotForHere"] == 1
    assert not line.is_over


@pytest.mark.req("RLY-9")
def test_nobody_answers_for_another() -> None:
    scene, rogue, line = intruded()
    scene.net.kill(2, is_dark=True)
    scene.give(scene.signed("node:gateway-2"))
    line.route(1, frame_of(Obeyed(1, DONE, "all is well")), [rogue.number])
    line.route(1, frame_of(Obeyed(1, DONE, "", b"{")), [rogue.number])
    assert scene.rows == []
    assert scene.net[1].refused == {"BadFacts": 1}


def test_whoever_sends_too_many_is_not_listened_to_and_others_are() -> None:
    scene, rogue, line = intruded()
    for token in range(COMMANDS_PER_S + 5):
        line.route(1, frame_of(CommandWord(token, b"nonsense", b"")), [rogue.number])
    assert scene.net[1].refused == {"BadCommand": COMMANDS_PER_S, "TooManyCommands": 5}
    scene.give(scene.signed("node:gateway-1"), place=2)
    assert scene.states == {"gateway-1": "done"}


def test_where_nobody_obeys_commands_they_are_counted() -> None:
    scene = Scene(2)
    scene.net[2].fabric.commanding = None
    scene.give(scene.signed())
    assert scene.net[2].refused == {"NoCommands": 1}
