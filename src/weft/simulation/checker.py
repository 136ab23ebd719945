"""Checks the messages received in a mesh against those published.

A subscriber without a group is owed a message if

- it subscribed to its subject before the message was published, and stayed to the end or until it
  received a later message of the same gateway;
- and its subscription was known: the origin sent this message, or an earlier one that matches the
  subscription, to the subscriber's gateway, knowing a version of its interest that includes the
  subscription. Where `reach` is unknown, the first message of that gateway to the same subject that
  the subscriber received takes its place: another subject may have been sent for the sake of
  another subscriber. Once known, a subscription stays known: if a gateway forgets it by mistake,
  that is a loss;
- or it received an earlier message of that gateway that was sent only for patterns which match this
  one as well: from its first message on, a stream has no gaps, whatever was known where.

Messages that a killed gateway had not sent yet are owed like all others: the other gateways report
a gap of unknown size when they detect its end.

An owed message that was not received is lost. The loss is reported if the subscriber got a gap for
that gateway (or for origin 0, which means any) between the last message of that gateway before the
lost one and the first after it; the gaps there together must count as many messages as are lost, or
one must be of unknown size. A gateway that started and ended behind a partition is never seen by
others, but the end of its earlier incarnation is. So a gap of unknown size for an earlier
incarnation, after the message was published, reports the loss if nothing of the later one was
received. Otherwise the message is lost silently.

Each message of a queue group is for one member. If no member received it, it is lost silently by
the group, unless a member got a gap for that gateway, or the message may have been sent to a member
that left after it was published, or before its departure was known at the origin. Where `reach` is
unknown, a gateway is assumed to know a group once a member received a message of it, and to count a
member that left for ten seconds more.

A request ends with one answer or one error. An answer may follow an error: the responder may return
after it was reported as gone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

import msgspec

from weft.simulation.history import (
    DeliveryRecord,
    GapRecord,
    History,
    LinkRecord,
    Published,
    SubscriberRecord,
)
from weft.wire.subjects import matches

LOST = "lost silently"
DOUBLED = "doubled"
MISORDERED = "misordered"
LOOPED = "looped"
UNANSWERED = "neither answered nor refused"
ANSWERED_TWICE = "answered twice"
GROUP_DOUBLED = "twice in a group"
GROUP_LOST = "lost by a group"
UNWANTED = "not asked for"
INVENTED = "never published"
NOT_CONVERGED = "not converged"
# How long a gateway may not know of the departure of a group member, without better information.
LEFT_NS = 10_000_000_000
KINDS = (
    *(LOST, DOUBLED, MISORDERED, LOOPED, UNANSWERED, ANSWERED_TWICE),
    *(GROUP_DOUBLED, GROUP_LOST, UNWANTED, INVENTED, NOT_CONVERGED),
)


class Violation(msgspec.Struct, frozen=True):
    """Violation of a guarantee: its kind, and the messages and clients affected."""

    kind: str
    text: str


class Verdict(msgspec.Struct):
    """Counts and violations found in a history."""

    violations: list[Violation] = []
    published: int = 0
    owed: int = 0
    heard: int = 0
    announced: int = 0
    # For a group, and lost with a member that left.
    left_with: int = 0
    gaps: int = 0
    asked: int = 0
    answered: int = 0
    refused: int = 0
    passages: int = 0
    # From the last fault until a probe from each gateway reached all; -1: never.
    converged_ns: int = 0

    def find(self, kind: str, text: str) -> None:
        """Add a violation."""
        self.violations.append(Violation(kind, text))


def check(history: History) -> Verdict:
    """Check a history."""
    verdict = Verdict(published=len(history.published), passages=len(history.passages))
    known = {(each.publisher, each.counter): each for each in history.published}
    by_origin: dict[int, list[Published]] = defaultdict(list)
    for each in history.published:
        by_origin[each.origin].append(each)
    groups: dict[str, list[SubscriberRecord]] = defaultdict(list)
    for session in history.sessions:
        _check_heard(session, known, verdict)
        if session.group:
            groups[session.group].append(session)
        else:
            for published in _concerning(session, by_origin):
                earlier = tuple(_earlier(published[0].origin, history.lives))
                _check_owed(session, published, earlier, verdict)
    for name, members in groups.items():
        _check_group(name, members, history.published, verdict)
    _check_asked(history, verdict)
    _check_passages(history.passages, verdict)
    _check_convergence(history, verdict)
    return verdict


def _check_heard(
    session: SubscriberRecord, known: dict[tuple[str, int], Published], verdict: Verdict
) -> None:
    """Check that received messages were published, subscribed to, in order and not duplicated."""
    last: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for event in session.events:
        if isinstance(event, GapRecord):
            verdict.gaps += 1
            continue
        verdict.heard += 1
        key = (event.publisher, event.counter)
        said = f"{session.subscriber} heard {_name(event)}"
        published = known.get(key)
        if published is None:
            verdict.find(INVENTED, said)
        elif not _wants(session.patterns, published.subject):
            verdict.find(UNWANTED, f"{said} of {published.subject}")
        if key in seen:
            verdict.find(DOUBLED, f"{said} twice")
        elif event.counter < last.get(event.publisher, 0):
            verdict.find(MISORDERED, f"{said} after {event.publisher} {last[event.publisher]}")
        else:
            last[event.publisher] = event.counter
        seen.add(key)


def _concerning(
    session: SubscriberRecord, by_origin: dict[int, list[Published]]
) -> Iterator[list[Published]]:
    """Yield the messages of each gateway that can owe some to a subscriber."""
    heard = {event.origin for event in session.events if isinstance(event, DeliveryRecord)}
    for origin, published in by_origin.items():
        if origin in heard or published[0].reach is not None:
            yield published


def _check_owed(
    session: SubscriberRecord,
    published: list[Published],
    earlier: tuple[int, ...],
    verdict: Verdict,
) -> None:
    """Check that the messages of one gateway owed to a subscriber arrived or were reported lost."""
    heard = {
        (event.publisher, event.counter)
        for event in session.events
        if isinstance(event, DeliveryRecord)
    }
    lost: dict[tuple[int, int], list[Published]] = defaultdict(list)
    places: list[tuple[int, DeliveryRecord]] = []
    for each in _owed(session, published, heard):
        if (each.publisher, each.counter) in heard:
            verdict.owed += 1
            continue
        places = places or _places(session.events, each.origin)
        before, after = _around(places, each)
        after = len(session.events) if after < 0 else after
        if session.ended_ns and after == len(session.events):
            # It left while the message, or its gap, may have been on its way.
            continue
        verdict.owed += 1
        lost[(before, after)].append(each)
    for (before, after), missing in lost.items():
        counts = [
            event.count
            for event in session.events[before + 1 : after]
            if isinstance(event, GapRecord) and event.origin in (0, missing[0].origin)
        ]
        is_unseen = before < 0 and after == len(session.events)
        if 0 in counts or (is_unseen and _is_over(session.events, earlier, missing[-1].time_ns)):
            allowed = len(missing)
        else:
            allowed = min(sum(counts), len(missing))
        verdict.announced += allowed
        for each in missing[allowed:]:
            verdict.find(LOST, f"{_name(each)} to {session.subscriber} at {session.gateway}")


def _earlier(origin: int, lives: dict[int, int]) -> Iterator[int]:
    """Yield the numbers that a gateway had before its restarts."""
    while origin := lives.get(origin, 0):
        yield origin


def _is_over(
    events: list[DeliveryRecord | GapRecord], earlier: tuple[int, ...], time_ns: int
) -> bool:
    """Return whether a gap after a time reports that an earlier incarnation is gone."""
    gaps = [event for event in events if isinstance(event, GapRecord) and event.origin in earlier]
    return any(gap.count == 0 and gap.time_ns >= time_ns for gap in gaps)


def _owed(
    session: SubscriberRecord, published: list[Published], heard: set[tuple[str, int]]
) -> Iterator[Published]:
    """Yield the messages of one gateway that are owed to a subscriber, if it stayed."""
    is_known = False
    subjects: set[str] = set()
    # For each received message, the patterns that match it.
    brought: set[frozenset[str]] = set()
    for each in published:
        asking = _asking(session.patterns, each.subject)
        if not asking:
            continue
        if session.ended_ns and each.time_ns > session.ended_ns:
            return
        is_in_time = each.time_ns > session.began_ns
        if (each.publisher, each.counter) in heard:
            subjects.add(each.subject)
            brought.add(asking)
        if each.reach is None:
            is_owed = each.subject in subjects
        else:
            is_known = is_known or (is_in_time and _is_known(session, each.origin, each.reach))
            is_owed = is_known or any(patterns <= asking for patterns in brought)
        if is_owed:
            yield each


def _is_known(session: SubscriberRecord, origin: int, reach: dict[int, int]) -> bool:
    """Return whether a subscription was known to the origin of a message with this reach."""
    return session.gateway == origin or reach.get(session.gateway, -1) >= session.version


def _places(
    events: list[DeliveryRecord | GapRecord], origin: int
) -> list[tuple[int, DeliveryRecord]]:
    """Return the received messages of a gateway with their positions."""
    return [
        (position, event)
        for position, event in enumerate(events)
        if isinstance(event, DeliveryRecord) and event.origin == origin
    ]


def _around(places: list[tuple[int, DeliveryRecord]], lost: Published) -> tuple[int, int]:
    """Return the positions of the received messages before and after a lost one, or -1."""
    before, after = -1, -1
    for position, event in places:
        if lost.sequence:
            is_before = event.sequence < lost.sequence
        elif event.publisher == lost.publisher:
            is_before = event.counter < lost.counter
        else:
            continue
        if is_before:
            before = position
        elif after < 0:
            after = position
    return before, after


def _check_group(
    name: str, members: list[SubscriberRecord], published: list[Published], verdict: Verdict
) -> None:
    heard = Counter(
        (event.publisher, event.counter)
        for member in members
        for event in member.events
        if isinstance(event, DeliveryRecord)
    )
    for key, count in heard.items():
        # Duplicates at one member were reported already.
        members_of_it = sum(_has(member, key) for member in members) if count > 1 else 1
        if members_of_it > 1:
            verdict.find(GROUP_DOUBLED, f"{name} got {key[0]} {key[1]} {members_of_it} times")
    # Gateways known to have received the group's subscription, if `reach` is unknown.
    origins: set[int] = set()
    for each in published:
        if (each.publisher, each.counter) in heard:
            origins.add(each.origin)
            continue
        if each.reach is None and each.origin not in origins:
            continue
        if not any(_is_member(member, each) for member in members):
            continue
        verdict.owed += 1
        if any(_was_told(member, each) for member in members):
            verdict.announced += 1
        elif any(_may_have_left_with(member, each) for member in members):
            verdict.left_with += 1
        else:
            verdict.find(GROUP_LOST, f"{name} did not get {_name(each)}")


def _is_member(member: SubscriberRecord, each: Published) -> bool:
    """Return whether a member that stayed was known to the origin of a message."""
    is_here = each.reach is None or _is_known(member, each.origin, each.reach)
    is_in_time = member.began_ns <= each.time_ns and not member.ended_ns
    return is_here and is_in_time and _wants(member.patterns, each.subject)


def _was_told(member: SubscriberRecord, each: Published) -> bool:
    """Return whether a member got a gap for a message."""
    return any(
        isinstance(event, GapRecord) and event.origin in (0, each.origin) for event in member.events
    )


def _may_have_left_with(member: SubscriberRecord, each: Published) -> bool:
    """Return whether a message may have been sent to a member that left."""
    if not member.ended_ns or not _wants(member.patterns, each.subject):
        return False
    if each.reach is None:
        return member.ended_ns > each.time_ns - LEFT_NS
    return member.ended_ns > each.time_ns or _is_known(member, each.origin, each.reach)


def _has(member: SubscriberRecord, key: tuple[str, int]) -> bool:
    return any(
        isinstance(event, DeliveryRecord) and (event.publisher, event.counter) == key
        for event in member.events
    )


def _check_asked(history: History, verdict: Verdict) -> None:
    for each in history.asked:
        verdict.asked += 1
        verdict.answered += each.answers > 0
        verdict.refused += each.refusals > 0
        name = f"{each.requester} {each.counter}"
        if not each.is_over:
            verdict.find(UNANSWERED, name)
        elif each.answers > 1 or each.refusals > 1:
            verdict.find(ANSWERED_TWICE, f"{name}: {each.answers} and {each.refusals} times")


def _check_passages(passages: list[LinkRecord], verdict: Verdict) -> None:
    """Check that no message passes a gateway twice, except when retransmitted."""
    seen: set[tuple[int, int, int, int]] = set()
    for each in passages:
        place = (each.origin, each.destination, each.number, each.path[-1])
        is_round = len(set(each.path)) < len(each.path)
        if is_round or (place in seen and not each.is_again):
            verdict.find(LOOPED, f"{each.number} of {each.origin} by {each.path}")
        if not each.is_again:
            seen.add(place)


def _check_convergence(history: History, verdict: Verdict) -> None:
    if not history.patience_ns:
        return
    complete = [
        max(each.heard_ns, default=each.time_ns)
        for each in history.rounds
        if len(each.heard_ns) == each.expected
    ]
    if not complete or history.agreed_ns < 0:
        verdict.converged_ns = -1
        why = "not all gateways agree" if complete else "no probe reached all gateways"
        verdict.find(NOT_CONVERGED, why)
        return
    verdict.converged_ns = max(0, min(complete), history.agreed_ns) - history.calm_ns
    verdict.converged_ns = max(0, verdict.converged_ns)
    if verdict.converged_ns > history.patience_ns:
        verdict.find(NOT_CONVERGED, f"only after {verdict.converged_ns / 1e9:.2f} s")


def _wants(patterns: tuple[str, ...], subject: str) -> bool:
    return bool(_asking(patterns, subject))


@cache
def _asking(patterns: tuple[str, ...], subject: str) -> frozenset[str]:
    """Return the patterns that match a subject."""
    return frozenset(each for each in patterns if matches(each.encode(), subject.encode()))


def _name(message: Published | DeliveryRecord) -> str:
    return f"{message.publisher} {message.counter} of {message.origin}"
