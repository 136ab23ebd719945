"""What both ends of a lane are told before there is one: who the other is, and how it is proven."""

from weft.broker.service import INBOX_BYTES
from weft.lanes.route_state import LaneRoute, Receiver
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import TICKET_S


def invitation(route: LaneRoute, receiver: Receiver) -> bytes:
    """What a receiver is told: who is to come, for what, and what it may have answered."""
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
    """What a publisher is told: everybody who is to get its route, and how each is reached."""
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
