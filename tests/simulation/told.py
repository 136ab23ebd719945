"""A history as it should be, made by hand: two publishers, those who listen, a group, probes."""

from weft.simulation.history import (
    DeliveryRecord,
    GapRecord,
    History,
    LinkRecord,
    Published,
    RequestRecord,
    Round,
    SubscriberRecord,
)

SECOND = 1_000_000_000
MESSAGES = 6


def correct() -> History:
    """Publishers at gateways 1 and 2 take turns; everyone who is subscribed hears everything."""
    history = History(calm_ns=10 * SECOND, agreed_ns=11 * SECOND, patience_ns=3 * SECOND)
    far = SubscriberRecord("s@3", 3, ("data.>",), "", 0, version=1)
    near = SubscriberRecord("t@1", 1, ("data.1",), "", 0, version=1)
    workers = [
        SubscriberRecord(f"w@{at}", at, ("data.1",), "workers", 0, version=1) for at in (3, 4)
    ]
    history.sessions = [far, near, *workers]
    for counter in range(1, MESSAGES + 1):
        for origin in (1, 2):
            _publish(history, origin, counter)
    history.asked.append(RequestRecord("q@1", 1, SECOND, answers=1))
    history.rounds = [Round(10 * SECOND, 4, [12 * SECOND] * 4), Round(11 * SECOND, 4, [])]
    return history


def _publish(history: History, origin: int, counter: int) -> None:
    far, near, *workers = history.sessions
    name, time_ns = f"p@{origin}", counter * SECOND
    reach = {1: 1, 2: 1, 3: 1, 4: 1}
    history.published.append(
        Published(name, counter, f"data.{origin}", origin, time_ns, counter, reach)
    )
    heard: DeliveryRecord | GapRecord = DeliveryRecord(name, counter, origin, counter, time_ns)
    far.events.append(heard)
    if origin == 1:
        near.events.append(heard)
        workers[counter % 2].events.append(heard)
    history.passages.append(LinkRecord(origin, 3 - origin, counter, (origin, 3 - origin)))
    history.passages.append(LinkRecord(origin, 3, counter, (origin, 3)))
