"""What the core does for other gateways: names them in routes, and lets them ask and answer."""

import pytest
from tests.broker.locksmith import record
from tests.broker.talk import (
    ANSWER,
    REQUEST,
    Guest,
    House,
    NotedDoor,
    ask,
    bodies,
    connect,
    errors,
    fields,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.auth.keys import Keyring
from weft.broker.delivery.backpressure import STILL_NS
from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import leave
from weft.broker.journal.release_staged import Release
from weft.broker.mesh_hooks import Beyond, Carrier
from weft.broker.replies import error_frame
from weft.broker.requests import pass_refusal, pass_reply, pass_request
from weft.broker.routing.route import Route
from weft.broker.routing.router import SubscriberKind
from weft.broker.service import Peer
from weft.errors import NotKnown
from weft.wire.frames import Flag, Frame, Kind, Run, encode

FAR = 9


class Noted(Beyond):
    """Remembers what it is to bring to other gateways."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.brought: list[tuple[bytes, int]] = []
        self.crowded: Outbox | None = None

    def spread(self, route: Route, start: int, end: int, count: int) -> Outbox | None:
        assert route.is_far
        assert end > start
        self.brought.append((route.subject, count))
        return self.crowded


class Listening(Carrier):
    """Remembers the runs that it is given."""

    def __init__(self) -> None:
        self.kinds: list[tuple[int, int]] = []
        self.parted = 0

    def take(self, run: Run) -> None:
        self.kinds.append((run.kind, run.count))

    def part(self) -> None:
        self.parted += 1


def house_with(*patterns: bytes, group: bytes = b"", is_listener: bool = False) -> House:
    """A house and another gateway that wants something."""
    house = House()
    house.service.beyond = Noted(house)
    peer = Peer(house.service, FAR, b"_INBOX.%08x." % FAR, NotedDoor())
    peer.outbox.is_distant = True
    house.service.inboxes[peer.inbox] = peer
    house.guests[FAR] = Guest(house, peer, NotedDoor())
    for pattern in patterns:
        house.service.router.subscribe(peer.outbox, pattern, group, 3, is_listener)
    return house


def far(house: House) -> Guest:
    return house.guests[FAR]


def brought(house: House) -> list[tuple[bytes, int]]:
    assert isinstance(house.service.beyond, Noted)
    return house.service.beyond.brought


def crowded_link(house: House) -> Guest:
    """A link that is over its high-water mark, and messages to the other gateway leave by it."""
    link = house.guest(b"link", b"full")
    link.is_reading = False
    while not link.peer.outbox.is_crowded:
        house.guest().say(message(b"full", bytes(1 << 20)))
    assert isinstance(house.service.beyond, Noted)
    house.service.beyond.crowded = link.peer.outbox
    return link


def route(house: House, subject: bytes) -> Route:
    found = house.service.router.route(subject)
    assert found is not None
    return found


def test_what_another_gateway_wants_is_brought_there_once_a_run() -> None:
    house = house_with(b"a.>", b"a.b")
    here = house.guest(b"x", b"a.b")
    publisher = house.guest()
    publisher.say(message(b"a.b"), message(b"a.b"), message(b"c"))
    assert brought(house) == [(b"a.b", 2)]
    assert len(here.heard()) == 2
    assert far(house).heard() == []


def test_what_wants_an_answer_is_brought_there_too() -> None:
    house = house_with(b"a")
    house.guest().say(message(b"a", flags=ANSWER))
    assert brought(house) == [(b"a", 1)]


@pytest.mark.parametrize("flags", [0, ANSWER])
def test_a_publisher_is_held_for_a_link_that_is_over_its_mark(flags: int) -> None:
    house = house_with(b"a")
    crowded_link(house)
    publisher, other = house.guest(), house.guest()
    publisher.say(message(b"a", flags=flags))
    other.say(message(b"here", flags=flags))
    assert publisher.peer.is_paused
    assert not other.peer.is_paused


def test_nobody_is_held_for_a_link_that_stands_still() -> None:
    house = house_with(b"a")
    crowded_link(house)
    house.service.now_ns += STILL_NS + 1
    publisher = house.guest()
    publisher.say(message(b"a"))
    assert not publisher.peer.is_paused


@pytest.mark.parametrize("reason", ["is held", "has a backlog", "drains"])
def test_a_link_holds_nobody_who_must_not_be_held(reason: str) -> None:
    house = house_with(b"a")
    link = crowded_link(house)
    publisher = link if reason == "has a backlog" else house.guest()
    publisher.peer.is_paused = reason == "is held"
    house.service.is_draining = reason == "drains"
    publisher.say(message(b"a"))
    assert house.service.holds == []


def test_rows_that_are_released_are_brought_there_too() -> None:
    house = house_with(b"a")
    frames = message(b"a") + message(b"a")
    start = house.arena.put(frames)
    Release(house.service).publish(start, house.arena.fill)
    assert brought(house) == [(b"a", 2)]


def test_an_answer_to_a_masked_subject_is_brought_there_too() -> None:
    house = house_with(b"answers")
    server = house.guest(b"s", b"q")
    house.guest().say(encode(Kind.MESSAGE, b"q", b"?", b"answers", Flag.MASKED))
    stand_in = server.heard()[-1].reply
    server.say(message(stand_in))
    assert brought(house) == [(b"answers", 1)]


def test_a_group_is_served_elsewhere_only_if_nobody_is_here() -> None:
    house = house_with(b"a", group=b"g")
    elsewhere = route(house, b"a")
    assert [group.name for group in elsewhere.far_groups] == [b"g"]
    assert elsewhere.is_far
    assert elsewhere.receivers() == 1
    member = house.guest()
    member.say(subscribe(b"a", b"g"))
    here = route(house, b"a")
    assert not here.is_far
    assert [group.name for group in here.groups] == [b"g"]


def test_one_member_of_a_named_group_gets_what_came_for_it() -> None:
    house = House()
    members = [house.guest() for _ in range(2)]
    for member in members:
        member.say(subscribe(b"a", b"g"))
    frames = message(b"a", b"1") + message(b"a", b"2")
    start = house.arena.put(frames)
    found = route(house, b"a")
    assert found.deliver_to_group(b"g", start, house.arena.fill) == 2
    assert found.deliver_to_group(b"other", start, house.arena.fill) == 0
    with pytest.raises(ValueError, match="are not among"):
        found.deliver_to_group(b"g", start, house.arena.fill + 1)
    house.flush()
    assert [bodies(member.heard()) for member in members] == [[b"1"], [b"2"]]


def test_a_request_goes_elsewhere_only_if_nobody_serves_here() -> None:
    house = house_with(b"q")
    asking = house.guest()
    asking.say(request(asking, b"q"))
    assert len(far(house).heard()) == 1
    server = house.guest(b"s", b"q")
    asking.say(request(asking, b"q", b"2"))
    assert far(house).heard() == []
    assert bodies(server.heard()) == [b"?"]


def test_a_gateway_that_cannot_be_reached_is_given_no_request() -> None:
    house = house_with(b"q")
    far(house).peer.outbox.is_away = True
    asking = house.guest()
    asking.heard()
    assert errors(asking.say(request(asking, b"q"))) == ["NotKnown"]


def test_a_request_goes_elsewhere_while_those_who_serve_here_are_away() -> None:
    house = house_with(b"q")
    server, asking = house.guest(b"s", b"q"), house.guest()
    server.peer.outbox.is_away = True
    asking.say(request(asking, b"q"))
    assert len(far(house).heard()) == 1
    server.peer.outbox.is_away = False
    asking.say(request(asking, b"q", b"2"))
    assert far(house).heard() == []
    assert bodies(server.heard()) == [b"?"]


def test_a_gateway_that_only_listens_is_given_no_request() -> None:
    house = house_with(b"q", is_listener=True)
    asking = house.guest()
    asking.heard()
    assert errors(asking.say(request(asking, b"q"))) == ["NotKnown"]


def test_a_reply_finds_the_gateway_of_whoever_asked() -> None:
    house = house_with()
    server = house.guest()
    server.say(message(b"_INBOX.%08x.%024x.1" % (FAR, 5), b"!"))
    assert bodies(far(house).heard()) == [b"!"]


def put(house: House, frame: bytes) -> int:
    """A frame as it lies in the arena when another gateway has passed it on."""
    stamped = bytearray(frame)
    stamped[8:12] = FAR.to_bytes(4, "little")
    return house.arena.put(stamped)


def pass_on(house: House, frame: bytes, subject: bytes, reply: bytes) -> object:
    peer = far(house).peer
    peer.subject = subject
    peer.route = route(house, subject)
    problem = pass_request(peer, put(house, frame), reply)
    house.flush()
    return problem


def test_a_request_that_was_passed_on_keeps_its_stamp_and_is_answered() -> None:
    house = house_with()
    server = house.guest(b"s", b"q")
    server.heard()
    reply = b"_INBOX.%08x.x" % FAR
    assert pass_on(house, encode(Kind.MESSAGE, b"q", b"?", reply, REQUEST), b"q", reply) is None
    (heard,) = server.heard()
    assert (heard.origin, heard.reply) == (FAR, reply)
    server.say(message(reply, b"!"))
    assert bodies(far(house).heard()) == [b"!"]
    assert far(house).peer.asking == {}


def test_a_request_is_not_passed_on_twice() -> None:
    house = house_with(b"q")
    reply = b"_INBOX.%08x.x" % FAR
    problem = pass_on(house, encode(Kind.MESSAGE, b"q", b"?", reply, REQUEST), b"q", reply)
    assert isinstance(problem, NotKnown)


def test_a_reply_that_was_passed_on_keeps_its_stamp() -> None:
    house = house_with()
    asking = house.guest()
    asking.heard()
    peer = far(house).peer
    for subject in (asking.inbox + b"1", asking.inbox[:-1]):
        peer.subject = subject
        assert pass_reply(peer, put(house, message(subject, b"!"))) is None
    house.flush()
    assert [(frame.body, frame.origin) for frame in asking.heard()] == [(b"!", FAR)] * 2


def test_a_reply_to_a_stand_in_keeps_its_stamp() -> None:
    house = house_with(b"q")
    asking = house.guest()
    asking.heard()
    asking.say(encode(Kind.MESSAGE, b"q", b"?", asking.inbox + b"1", REQUEST | Flag.MASKED))
    (asked,) = far(house).heard()
    peer = far(house).peer
    peer.subject = asked.reply
    assert pass_reply(peer, put(house, message(asked.reply, b"!"))) is None
    house.flush()
    (answer,) = asking.heard()
    assert (answer.subject, answer.body, answer.origin) == (asking.inbox + b"1", b"!", FAR)


def test_what_was_passed_on_to_nobody_is_dropped() -> None:
    house = house_with()
    peer = far(house).peer
    peer.subject = b"_INBOX.%08x.%024x.1" % (7, 99)
    assert pass_reply(peer, put(house, message(peer.subject))) is None
    assert isinstance(pass_reply(peer, put(house, message(peer.subject, flags=REQUEST))), NotKnown)


def test_a_refusal_that_was_passed_on_reaches_whoever_asked_once() -> None:
    house = house_with(b"q")
    asking = house.guest()
    asking.heard()
    reply = asking.inbox + b"1"
    asking.say(encode(Kind.MESSAGE, b"q", b"?", reply, REQUEST))
    peer = far(house).peer
    refusal = error_frame(peer, b"q", reply, (Kind.MESSAGE, REQUEST), NotKnown("gone"))
    for _ in range(2):
        pass_refusal(peer, house.arena.put(refusal))
    house.flush()
    assert errors(asking.heard()) == ["NotKnown"]
    assert asking.peer.asking == {}


def test_what_connections_here_want_is_noted_if_anybody_looks() -> None:
    house = house_with(b"far")
    router = house.service.router
    guest = house.guest(b"x", b"a")
    assert router.changes is None
    router.changes = {}
    guest.say(subscribe(b"b.*"), subscribe(b"c.>", b"g"), unsubscribe(b"a"))
    router.subscribe(far(house).peer.outbox, b"d")
    assert list(router.changes) == [(b"b.*", b""), (b"c.>", b"g"), (b"a", b"")]


def test_the_router_says_how_a_pattern_is_wanted_here() -> None:
    house = house_with(b"a", b"b.*")
    router = house.service.router
    patterns = [b"a", b"b.*", b"b.>", b"c.*.d", b"c.>", b"x.*"]
    assert {router.wanted_here(pattern) for pattern in patterns} == {SubscriberKind.NOT}
    guest, listener = house.guest(), house.guest()
    for pattern in patterns[:-1]:
        listener.say(subscribe(pattern, listen_only=True))
        assert router.wanted_here(pattern) is SubscriberKind.TO_LISTEN
        guest.say(subscribe(pattern))
        assert router.wanted_here(pattern) is SubscriberKind.TO_ANSWER
        assert router.wanted_here(pattern, b"g") is SubscriberKind.NOT
    guest.say(subscribe(b"a", b"g"))
    assert router.wanted_here(b"a", b"g") is SubscriberKind.TO_ANSWER
    assert router.wanted_here(b"a", b"h") is SubscriberKind.NOT
    assert router.wanted_here(b"y.z.*") is SubscriberKind.NOT


def test_a_carrier_deals_with_everything_that_its_peer_says() -> None:
    house = House()
    guest = house.guest()
    carrier = Listening()
    guest.peer.carrier = carrier
    guest.send(message(b"a") + message(b"a") + subscribe(b"b") + encode(Kind.FORWARD))
    assert carrier.kinds == [(Kind.MESSAGE, 2), (Kind.SUBSCRIBE, 1), (Kind.FORWARD, 1)]


def test_a_gateway_that_asks_to_be_linked_is_handed_to_whoever_links() -> None:
    house = House()
    met: list[tuple[Peer, Frame]] = []
    house.service.on_link = lambda peer, frame: met.append((peer, frame))
    guest = house.arrive()
    assert guest.say(encode(Kind.LINK, b"weather", b"hello")) == []
    assert [(peer, frame.body) for peer, frame in met] == [(guest.peer, b"hello")]


def test_a_service_that_is_in_no_mesh_links_with_nobody() -> None:
    guest = House().arrive()
    assert len(errors(guest.say(encode(Kind.LINK, b"weather")))) == 1
    assert guest.peer.is_over


def test_what_is_beyond_has_to_be_made() -> None:
    house = House()
    with pytest.raises(NotImplementedError):
        Beyond().spread(route(house, b"a"), 0, 0, 0)
    with pytest.raises(NotImplementedError):
        Carrier().take(house.service.run)
    with pytest.raises(NotImplementedError):
        Carrier().part()


def test_a_carrier_is_told_once_that_its_link_is_over() -> None:
    house = House()
    guest = house.guest()
    carrier = Listening()
    guest.peer.carrier = carrier
    guest.peer.end(None)
    house.flush()
    leave(guest.peer)
    assert carrier.parted == 1


def test_a_greeting_from_whoever_is_here_already_is_refused() -> None:
    house = House()
    house.service.on_link = lambda _peer, _frame: None
    guest = house.guest()
    guest.heard()
    assert errors(guest.say(connect()))


def linked(house: House) -> Guest:
    """Another gateway at the end of a link."""
    guest = house.guest(b"gateway")
    guest.peer.carrier = Listening()
    guest.heard()
    return guest


def test_a_gateway_greets_once() -> None:
    house = House()

    def link(peer: Peer, _frame: Frame) -> None:
        peer.carrier = Listening()

    house.service.on_link = link
    hello = encode(Kind.LINK, b"weather", b"hello")
    guest = house.arrive()
    assert len(errors(guest.say(hello, hello))) == 1
    assert guest.peer.is_over


def test_links_are_no_connections_to_ask_about() -> None:
    house = House()
    guest = house.guest(b"me")
    gateway = linked(house)
    assert ask(guest, "status")["connections"] == 1
    assert [each["name"] for each in ask(guest, "connections")["connections"]] == ["me"]
    assert ask(guest, "connections", connection=gateway.peer.number)["connections"] == []


def test_whoever_asks_who_listens_is_told_of_other_gateways() -> None:
    house = house_with(b"a.*")
    house.service.router.subscribe(far(house).peer.outbox, b"a.b", b"g", 3, False)
    far(house).peer.name = "paris"
    guest = house.guest(b"me", b"a.b")
    answer = ask(guest, "subscribers", subject="a.b")
    assert [each["name"] for each in answer["subscribers"]] == ["me"]
    assert answer["gateways"] == [
        {"number": FAR, "name": "paris", "group": ""},
        {"number": FAR, "name": "paris", "group": "g"},
    ]


def test_links_need_no_key() -> None:
    house = House()
    gateway = linked(house)
    house.service.set_keys(Keyring([record("one")]))
    house.flush()
    assert not gateway.peer.is_over


def test_the_end_of_a_link_is_not_told_as_that_of_a_connection() -> None:
    house = House()
    listener = house.guest(b"me", b"_WEFT.event.disconnected")
    gateway = linked(house)
    client = house.guest(b"you")
    listener.heard()
    leave(gateway.peer)
    leave(client.peer)
    house.flush()
    assert [fields(each)["name"] for each in listener.heard()] == ["you"]
