"""Rate limit of operations other than messages: a credit that refills with time.

Each operation costs credit in proportion to its work: a frame, a pattern, a scan of the registry.
So a peer cannot keep a service busy with a few small frames.
"""

from weft.broker.service import Peer
from weft.errors import ControlFlood

_S = 1e9


def spend(peer: Peer, credit: int) -> None:
    """Charge the credit of a peer.

    Raises:
        ControlFlood: not enough credit left.
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
