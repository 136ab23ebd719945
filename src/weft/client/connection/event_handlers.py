"""Handlers of session events that do not change the connection: answers, refusals, gaps."""

from collections.abc import Callable
from typing import Any

from weft.client.channels.memberships import Memberships
from weft.client.connection import events as talk
from weft.client.status import Reporter, Status, What
from weft.client.subscriptions.registry import SubscriptionState
from weft.client.subscriptions.subscriptions import Subscriptions


class Hearing:
    """Passes events to waiters, subscriptions and memberships."""

    def __init__(
        self, subscriptions: Subscriptions, memberships: Memberships, reporter: Reporter
    ) -> None:
        self._subscriptions = subscriptions
        self._memberships = memberships
        self._reporter = reporter
        self.on: dict[type[Any], Callable[[Any], None]] = {
            talk.Answered: self._answered,
            talk.RefusedRequest: self._failed,
            talk.TakenBack: self._taken_back,
            talk.MessagesLost: self._missed,
            talk.Late: self._late,
        }

    def _answered(self, event: talk.Answered) -> None:
        if isinstance(event.waiter, SubscriptionState):
            self._subscriptions.confirmed(event.waiter, event.frame)
        else:
            event.waiter.answered(event.frame)

    def _failed(self, event: talk.RefusedRequest) -> None:
        event.waiter.failed(event.error)
        if isinstance(event.waiter, SubscriptionState):
            self._subscriptions.refused(event.waiter, event.error)

    def _taken_back(self, event: talk.TakenBack) -> None:
        if not self._memberships.taken_back(event):
            self._subscriptions.taken_back(event.pattern, event.group, event.error)

    def _missed(self, event: talk.MessagesLost) -> None:
        gap = event.gap
        missed = (
            f"{gap.count} messages were"
            if gap.count is not None
            else "an unknown number of messages was"
        )
        self._subscriptions.announce(gap, f"{missed} missed: {gap.reason}")

    def _late(self, _: talk.Late) -> None:
        self._reporter.statistics.late += 1

    def refused(self, event: talk.News) -> None:
        """Report a refused frame whose sender awaits no answer."""
        about = f"a frame to {event.subject}" if event.subject else "a frame"
        self._reporter.report(Status(What.REFUSED, f"{about} is refused", event.error))
