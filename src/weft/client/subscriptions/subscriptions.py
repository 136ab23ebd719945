"""The subscriptions of one connection: what the gateway is asked for, and what it says to that.

They outlive the line that they were asked for over; the next one is asked anew.
"""

from weft.client.connection.session import Session, unsubscribe_frame
from weft.client.publish.send_buffer import Outgoing
from weft.client.status import Gap, Reporter, Status, What
from weft.client.subscriptions.dispatch import Dispatch
from weft.client.subscriptions.registry import Interests, Listening, Place
from weft.errors import BadOption, NotOpen, Overloaded, WeftError


class Subscriptions:
    """What a connection hears; `is_asking` says that a gateway listens at the moment."""

    def __init__(
        self, session: Session, outgoing: Outgoing, reporter: Reporter, limit: int
    ) -> None:
        self.is_asking = False
        self.interests = Interests()
        self.dispatch = Dispatch(self.interests, reporter.statistics)
        self._session = session
        self._outgoing = outgoing
        self._reporter = reporter
        self._limit = limit
        self._is_withdrawn = False

    def add(self, listening: Listening) -> None:
        """Begin a subscription; `listening.settled` is set once the gateway has answered.

        Raises:
            BadOption: it disagrees with one that is there, or has too many patterns.
            NotOpen: everything was withdrawn.
            Overloaded: there are too many, or the gateway does not read.
        """
        if self._is_withdrawn:
            raise NotOpen("the connection is closed")
        # Each is asked for again, and awaits an answer, when the connection comes back.
        if len(self.interests) >= self._limit:
            raise Overloaded(f"{self._limit} subscriptions are all there may be")
        listening.check(self._session.body_limit_bytes)
        self.interests.add(listening)
        self.dispatch.forget()
        if self.is_asking and not listening.is_parked:
            try:
                self._outgoing.put_control(self._frame(listening))
            except BaseException:
                # It was not asked for, so no answer to it comes either.
                self._session.withdraw(listening)
                self._remove(listening)
                raise

    def remove(self, listening: Listening) -> None:
        """End a subscription; nothing more comes of it.

        Raises:
            Overloaded: the gateway does not read, and goes on sending what nobody wants.
        """
        gone = self._remove(listening)
        if gone and self.is_asking and not listening.is_parked:
            self._outgoing.put_control(unsubscribe_frame(gone, listening.group))

    def confirmed(self, listening: Listening, frame: bytes) -> None:
        """The gateway confirmed one: it is heard from here on."""
        listening.answered(frame)
        self.dispatch.forget()

    def refused(self, listening: Listening, error: WeftError) -> None:
        """The gateway refused one; it has no effect there, so there is nothing to take back."""
        self._remove(listening)
        names = ", ".join(listening.names[:3])
        self._reporter.report(
            Status(What.REFUSED, f"the subscription to {names} is refused", error)
        )

    def taken_back(self, pattern: bytes, group: bytes, error: WeftError) -> None:
        """The gateway lets us hear a pattern no more; whoever asked for it hears nothing more.

        Raises:
            Overloaded: the gateway does not read.
        """
        for listening in self.interests.asking(pattern, group):
            listening.failed(error)
            gone = [each for each in self._remove(listening) if each != pattern]
            if gone and self.is_asking:
                self._outgoing.put_control(unsubscribe_frame(gone, group))
        detail = f"the subscription to {pattern.decode()} is taken back"
        self._reporter.report(Status(What.REFUSED, detail, error))

    def ask_again(self, lost: WeftError | None = None) -> bytes:
        """The frames that ask a new gateway for everything, after the last connection was lost."""
        if self._is_withdrawn:
            return b""
        self._refuse_too_long()
        self.dispatch.resume()
        for listening in self.interests:
            listening.asked_again(lost)
        self.dispatch.forget()
        asked = [each for each in self.interests if not each.is_parked]
        return b"".join([self._frame(listening) for listening in asked])

    def resume(self, place: Place) -> None:
        """Ask for what is heard in a channel that was joined again, perhaps by another id.

        Raises:
            Overloaded: the gateway does not read.
        """
        within = self._within(place)
        for listening in within:
            self.interests.remove(listening)
            listening.follow()
            self.interests.add(listening)
        self.dispatch.forget()
        if self.is_asking and not self._is_withdrawn:
            self._outgoing.put_control(b"".join([self._frame(each) for each in within]))

    def leave(self, place: Place, error: WeftError | None) -> None:
        """End what is heard in a channel.

        Raises:
            Overloaded: the gateway does not read.
        """
        for listening in self._within(place):
            listening.end(error)
            self.remove(listening)

    def announce(self, gap: Gap, detail: str) -> None:
        """Messages were missed: tell the owner, and every subscription in its place."""
        self._reporter.report(Status(What.GAP, detail, gap=gap))
        for listening in self.interests:
            listening.sink.missed(gap)

    def withdraw(self) -> None:
        """Ask for nothing more, now or later; what is on its way is still delivered.

        Raises:
            Overloaded: the gateway does not read.
        """
        was_withdrawn = self._is_withdrawn
        self._is_withdrawn = True
        if self.is_asking and not was_withdrawn:
            for listening in self.interests:
                if not listening.is_parked:
                    frame = unsubscribe_frame(listening.patterns, listening.group)
                    self._outgoing.put_control(frame)

    def finish(self) -> None:
        """Tell each that nothing more comes; it still has what came."""
        for listening in self.interests:
            listening.end()

    def clear(self) -> None:
        """End all of them."""
        self._is_withdrawn = True
        for listening in self.interests:
            self._remove(listening)

    def _within(self, place: Place) -> list[Listening]:
        return [listening for listening in self.interests if listening.place is place]

    def _refuse_too_long(self) -> None:
        """Give up what this gateway takes no frame for; it would end every connection over it."""
        for listening in self.interests:
            try:
                listening.check(self._session.body_limit_bytes)
            except BadOption as error:
                listening.failed(error)
                self.refused(listening, error)

    def _remove(self, listening: Listening) -> list[bytes]:
        self._session.forget(listening)
        gone = self.interests.remove(listening)
        self.dispatch.forget()
        listening.end()
        return gone

    def _frame(self, listening: Listening) -> bytes:
        return self._session.subscribe(
            listening, listening.patterns, listening.group, listening.body
        )
