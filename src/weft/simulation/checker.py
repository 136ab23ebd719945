"""Judges what was heard in a mesh against what was published.

A plain subscriber is owed a message if

- it was subscribed to its subject before the message entered, and stayed: to the end, or until it
  heard a later message of the same gateway;
- and its subscription was known: the gateway where the message entered sent this one, or an earlier
  one that the subscription asks for too, to the subscriber's gateway, knowing a version of what
  that wants which the subscription is part of. Where it is not known what was sent where, the first
  message of that gateway to the same subject that the subscriber heard takes its place: another
  subject may have come because somebody else asked for it. Once known, a subscription stays known:
  what a gateway forgets by mistake is a loss;
- or it heard an earlier message of that gateway that only patterns can have brought which match
  this one, too: from its first message on, a stream has no holes, whatever was known where.

Messages that a killed gateway had not sent are owed like all others: those who hear that it is gone
announce a loss of unknown size.

What is owed and was not heard is lost. The loss is announced if the subscriber heard of a gap of
that gateway (or of any: origin 0) after the last message of it from before the lost one, and before
the first from after it; all gaps there together must count as many as are lost, or one must be of
unknown size. Of a gateway that came and went unseen, behind a partition, nobody can know; but it is
known that its life before is over. So a gap of unknown size of an earlier life of the same gateway,
told after the message was published, announces the loss if nothing of the later one was heard.
Otherwise it is lost silently.

Each message of a queue group is for one member. If no member heard it, that is a silent loss of the
group unless a member was told of a gap of that gateway, or it may have been for one that left: it
left after the message was published, or before that was known where it was published. Where it is
not known what was sent where, a group is known to a gateway once a member has heard a message of
it, and a member that left for ten seconds after.

A request ends in one answer or in one refusal. An answer may come after a refusal: whoever answers
may be back when it was already said that it is gone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

import msgspec

from weft.simulation.history import Gap, Heard, History, Passage, Published, Session
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
# For so long a gateway may not know that a member of a group left, if nothing else is known.
LEFT_NS = 10_000_000_000
KINDS = (
    *(LOST, DOUBLED, MISORDERED, LOOPED, UNANSWERED, ANSWERED_TWICE),
    *(GROUP_DOUBLED, GROUP_LOST, UNWANTED, INVENTED, NOT_CONVERGED),
)


class Violation(msgspec.Struct, frozen=True):
    """Something that must not happen: what, and to whom."""

    kind: str
    text: str


class Verdict(msgspec.Struct):
    """What was found in a history, in messages and in violations."""

    violations: list[Violation] = []
    published: int = 0
    owed: int = 0
    heard: int = 0
    announced: int = 0
    # For a group, and gone with one of its members.
    left_with: int = 0
    gaps: int = 0
    asked: int = 0
    answered: int = 0
    refused: int = 0
    passages: int = 0
    # From the last fault until everyone reached everyone; -1: it never came to that.
    converged_ns: int = 0

    def find(self, kind: str, text: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(kind, text))


def check(history: History) -> Verdict:
    """Judge a history."""
    verdict = Verdict(published=len(history.published), passages=len(history.passages))
    known = {(each.publisher, each.counter): each for each in history.published}
    by_origin: dict[int, list[Published]] = defaultdict(list)
    for each in history.published:
        by_origin[each.origin].append(each)
    groups: dict[str, list[Session]] = defaultdict(list)
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
    session: Session, known: dict[tuple[str, int], Published], verdict: Verdict
) -> None:
    """What came must have been published, asked for, in order, and once."""
    last: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for event in session.events:
        if isinstance(event, Gap):
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
    session: Session, by_origin: dict[int, list[Published]]
) -> Iterator[list[Published]]:
    """The messages of those gateways that can owe a subscriber any."""
    heard = {event.origin for event in session.events if isinstance(event, Heard)}
    for origin, published in by_origin.items():
        if origin in heard or published[0].reach is not None:
            yield published


def _check_owed(
    session: Session, published: list[Published], earlier: tuple[int, ...], verdict: Verdict
) -> None:
    """Of one gateway, what a subscriber is owed must have come, or be announced as lost."""
    heard = {
        (event.publisher, event.counter) for event in session.events if isinstance(event, Heard)
    }
    lost: dict[tuple[int, int], list[Published]] = defaultdict(list)
    places: list[tuple[int, Heard]] = []
    for each in _owed(session, published, heard):
        if (each.publisher, each.counter) in heard:
            verdict.owed += 1
            continue
        places = places or _places(session.events, each.origin)
        before, after = _around(places, each)
        after = len(session.events) if after < 0 else after
        if session.ended_ns and after == len(session.events):
            # It left: the message, or the news that it is lost, may have been on its way.
            continue
        verdict.owed += 1
        lost[(before, after)].append(each)
    for (before, after), missing in lost.items():
        counts = [
            event.count
            for event in session.events[before + 1 : after]
            if isinstance(event, Gap) and event.origin in (0, missing[0].origin)
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
    """The numbers that a gateway had before."""
    while origin := lives.get(origin, 0):
        yield origin


def _is_over(events: list[Heard | Gap], earlier: tuple[int, ...], time_ns: int) -> bool:
    """Say if it was told after a time that an earlier life of a gateway is over."""
    gaps = [event for event in events if isinstance(event, Gap) and event.origin in earlier]
    return any(gap.count == 0 and gap.time_ns >= time_ns for gap in gaps)


def _owed(
    session: Session, published: list[Published], heard: set[tuple[str, int]]
) -> Iterator[Published]:
    """What of one gateway's messages a subscriber should have heard, if it stayed."""
    is_known = False
    subjects: set[str] = set()
    # For each message that was heard, the patterns that can have brought it.
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


def _is_known(session: Session, origin: int, reach: dict[int, int]) -> bool:
    """Say if a subscription was known at a gateway that sent a message as far as this."""
    return session.gateway == origin or reach.get(session.gateway, -1) >= session.version


def _places(events: list[Heard | Gap], origin: int) -> list[tuple[int, Heard]]:
    """The messages of a gateway that were heard, and their positions."""
    return [
        (position, event)
        for position, event in enumerate(events)
        if isinstance(event, Heard) and event.origin == origin
    ]


def _around(places: list[tuple[int, Heard]], lost: Published) -> tuple[int, int]:
    """The positions of the last message from before a lost one, and of the first from after it.

    Either is -1 if there is none.
    """
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
    name: str, members: list[Session], published: list[Published], verdict: Verdict
) -> None:
    heard = Counter(
        (event.publisher, event.counter)
        for member in members
        for event in member.events
        if isinstance(event, Heard)
    )
    for key, count in heard.items():
        # A member that hears it twice was found out already.
        members_of_it = sum(_has(member, key) for member in members) if count > 1 else 1
        if members_of_it > 1:
            verdict.find(GROUP_DOUBLED, f"{name} got {key[0]} {key[1]} {members_of_it} times")
    # Those gateways that know of the group, where nothing else says so.
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


def _is_member(member: Session, each: Published) -> bool:
    """Say if a member that stayed was known to be there for a message."""
    is_here = each.reach is None or _is_known(member, each.origin, each.reach)
    is_in_time = member.began_ns <= each.time_ns and not member.ended_ns
    return is_here and is_in_time and _wants(member.patterns, each.subject)


def _was_told(member: Session, each: Published) -> bool:
    """Say if a member was told of a loss."""
    return any(
        isinstance(event, Gap) and event.origin in (0, each.origin) for event in member.events
    )


def _may_have_left_with(member: Session, each: Published) -> bool:
    """Say if a message may have been for a member that left."""
    if not member.ended_ns or not _wants(member.patterns, each.subject):
        return False
    if each.reach is None:
        return member.ended_ns > each.time_ns - LEFT_NS
    return member.ended_ns > each.time_ns or _is_known(member, each.origin, each.reach)


def _has(member: Session, key: tuple[str, int]) -> bool:
    return any(
        isinstance(event, Heard) and (event.publisher, event.counter) == key
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


def _check_passages(passages: list[Passage], verdict: Verdict) -> None:
    """No message for one gateway passes any gateway twice, unless it was asked for again."""
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
        why = "not all know the same" if complete else "no probe reached everyone"
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
    """Return those patterns that match a subject."""
    return frozenset(each for each in patterns if matches(each.encode(), subject.encode()))


def _name(message: Published | Heard) -> str:
    return f"{message.publisher} {message.counter} of {message.origin}"
