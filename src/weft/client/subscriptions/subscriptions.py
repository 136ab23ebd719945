"""Subscriptions of one connection: requests to the gateway and its answers.

They outlive a disconnection and are sent again over the next connection.
"""

from weft.client.connection.session import ClientSession, unsubscribe_frame
from weft.client.publish.send_buffer import SendBuffer
from weft.client.status import Gap, Reporter, Status, What
from weft.client.subscriptions.dispatch import Dispatch
from weft.client.subscriptions.registry import (
    SubscriptionChannel,
    SubscriptionRegistry,
    SubscriptionState,
)
from weft.errors import BadOption, NotOpen, Overloaded, WeftError


class Subscriptions:
    """Manages the subscriptions; `is_asking` is True while the gateway can take requests."""

    def __init__(
        self, session: ClientSession, outgoing: SendBuffer, reporter: Reporter, limit: int
    ) -> None:
        self.is_asking = False
        self.interests = SubscriptionRegistry()
        self.dispatch = Dispatch(self.interests, reporter.statistics)
        self._session = session
        self._outgoing = outgoing
        self._reporter = reporter
        self._limit = limit
        self._is_withdrawn = False

    def add(self, listening: SubscriptionState) -> None:
        """Add a subscription; `listening.settled` is set once the gateway has answered.

        Raises:
            BadOption: It conflicts with a registered subscription, or has too many patterns.
            NotOpen: withdraw() was called.
            Overloaded: Too many subscriptions, or the gateway does not read.
        """
        if self._is_withdrawn:
            raise NotOpen("the connection is closed")
        # Each is sent again after a reconnection, and awaits an answer.
        if len(self.interests) >= self._limit:
            raise Overloaded(f"the limit of {self._limit} subscriptions is reached")
        listening.check(self._session.body_limit_bytes)
        self.interests.add(listening)
        self.dispatch.forget()
        if self.is_asking and not listening.is_parked:
            try:
                self._outgoing.put_control(self._frame(listening))
            except BaseException:
                # It was not sent, so no answer to it arrives either.
                self._session.withdraw(listening)
                self._remove(listening)
                raise

    def remove(self, listening: SubscriptionState) -> None:
        """End a subscription and unsubscribe its patterns.

        Raises:
            Overloaded: The gateway does not read, and continues to send unwanted messages.
        """
        gone = self._remove(listening)
        if gone and self.is_asking and not listening.is_parked:
            self._outgoing.put_control(unsubscribe_frame(gone, listening.group))

    def confirmed(self, listening: SubscriptionState, frame: bytes) -> None:
        """Handle the gateway's confirmation of a subscription."""
        listening.answered(frame)
        self.dispatch.forget()

    def refused(self, listening: SubscriptionState, error: WeftError) -> None:
        """Handle the gateway's refusal of a subscription, which needs no UNSUBSCRIBE."""
        self._remove(listening)
        names = ", ".join(listening.names[:3])
        self._reporter.report(
            Status(What.REFUSED, f"the subscription to {names} is refused", error)
        )

    def taken_back(self, pattern: bytes, group: bytes, error: WeftError) -> None:
        """Handle a revoked subscription: end all subscriptions of this pattern and group.

        Raises:
            Overloaded: The gateway does not read.
        """
        for listening in self.interests.asking(pattern, group):
            listening.failed(error)
            gone = [each for each in self._remove(listening) if each != pattern]
            if gone and self.is_asking:
                self._outgoing.put_control(unsubscribe_frame(gone, group))
        detail = f"the subscription to {pattern.decode()} was revoked"
        self._reporter.report(Status(What.REFUSED, detail, error))

    def ask_again(self, lost: WeftError | None = None) -> bytes:
        """Return the frames that send all subscriptions to a new gateway after a disconnection."""
        if self._is_withdrawn:
            return b""
        self._refuse_too_long()
        self.dispatch.resume()
        for listening in self.interests:
            listening.asked_again(lost)
        self.dispatch.forget()
        asked = [each for each in self.interests if not each.is_parked]
        return b"".join([self._frame(listening) for listening in asked])

    def resume(self, place: SubscriptionChannel) -> None:
        """Send the subscriptions of a channel that was joined again, perhaps with another id.

        Raises:
            Overloaded: The gateway does not read.
        """
        within = self._within(place)
        for listening in within:
            self.interests.remove(listening)
            listening.follow()
            self.interests.add(listening)
        self.dispatch.forget()
        if self.is_asking and not self._is_withdrawn:
            self._outgoing.put_control(b"".join([self._frame(each) for each in within]))

    def leave(self, place: SubscriptionChannel, error: WeftError | None) -> None:
        """End the subscriptions of a channel.

        Raises:
            Overloaded: The gateway does not read.
        """
        for listening in self._within(place):
            listening.end(error)
            self.remove(listening)

    def announce(self, gap: Gap, detail: str) -> None:
        """Report lost messages as a status, and to every subscription as a gap."""
        self._reporter.report(Status(What.GAP, detail, gap=gap))
        for listening in self.interests:
            listening.sink.missed(gap)

    def withdraw(self) -> None:
        """Unsubscribe everything and refuse new subscriptions; messages in transit still arrive.

        Raises:
            Overloaded: The gateway does not read.
        """
        was_withdrawn = self._is_withdrawn
        self._is_withdrawn = True
        if self.is_asking and not was_withdrawn:
            for listening in self.interests:
                if not listening.is_parked:
                    frame = unsubscribe_frame(listening.patterns, listening.group)
                    self._outgoing.put_control(frame)

    def finish(self) -> None:
        """End all subscriptions; received messages may still be taken."""
        for listening in self.interests:
            listening.end()

    def clear(self) -> None:
        """Remove all subscriptions."""
        self._is_withdrawn = True
        for listening in self.interests:
            self._remove(listening)

    def _within(self, place: SubscriptionChannel) -> list[SubscriptionState]:
        return [listening for listening in self.interests if listening.place is place]

    def _refuse_too_long(self) -> None:
        """End subscriptions over the gateway's body limit, for which it would disconnect."""
        for listening in self.interests:
            try:
                listening.check(self._session.body_limit_bytes)
            except BadOption as error:
                listening.failed(error)
                self.refused(listening, error)

    def _remove(self, listening: SubscriptionState) -> list[bytes]:
        self._session.forget(listening)
        gone = self.interests.remove(listening)
        self.dispatch.forget()
        listening.end()
        return gone

    def _frame(self, listening: SubscriptionState) -> bytes:
        return self._session.subscribe(
            listening, listening.patterns, listening.group, listening.body
        )
