"""Invitation and offer of a lane: identity, address and credentials of the other end."""

from weft.broker.service import INBOX_BYTES
from weft.lanes.route_state import LaneReceiver, LaneRoute
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import TICKET_S


def invitation(route: LaneRoute, receiver: LaneReceiver) -> bytes:
    """Encode the invitation to a receiver: publisher, subject, ticket and permissions."""
    publisher = route.publisher
    facts = {
        "ticket": receiver.ticket,
        "key": receiver.key,
        "ttl_s": TICKET_S,
        "sender": publisher.number,
        "name": publisher.name,
        "inbox": publisher.inbox[:INBOX_BYTES].decode(),
        "encrypt": receiver.is_encrypted,
        "answers": receiver.answers,
    }
    return lane_frame("invite", route.subject, **facts)


def offer(route: LaneRoute) -> bytes:
    """Encode the offer to a publisher: addresses and tickets of all receivers of its route."""
    lanes = [
        {
            "receiver": number,
            "name": each.peer.name,
            "address": each.address,
            "unix": each.unix,
            "ticket": each.ticket,
            "key": each.key,
            "encrypt": each.is_encrypted,
            "answers": each.answers,
        }
        for number, each in route.receivers.items()
    ]
    facts = {"lanes": lanes, "ttl_s": TICKET_S, "reason": route.reason}
    return lane_frame("offer", route.subject, **facts)
