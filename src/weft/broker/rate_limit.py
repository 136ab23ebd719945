"""What a peer may still ask for at the moment: a credit that time restores.

Everything but messages costs credit, by what it makes the gateway do: a frame, a pattern, a look
through the registry. So no peer can keep a service busy with a few small frames.
"""

from weft.broker.service import Peer
from weft.errors import ControlFlood

_S = 1e9


def spend(peer: Peer, credit: int) -> None:
    """Take from the credit of a peer.

    Raises:
        ControlFlood: it has not enough left.
    """
    service = peer.service
    limits = service.limits
    earned = (service.now_ns - peer.control_ns) / _S * limits.control_per_s
    peer.control_ns = service.now_ns
    peer.control_credit = min(float(limits.control_burst), peer.control_credit + earned) - credit
    if peer.control_credit < 0:
        raise ControlFlood(
            f"over {limits.control_burst} control frames at once,"
            f" or {limits.control_per_s} a second"
        )
