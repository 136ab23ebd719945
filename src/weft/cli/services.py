"""Which services there are where messages are read."""

from typing import TYPE_CHECKING

from weft.cli.asked import GatewayPage, fetch_status, read
from weft.cli.target import Target
from weft.errors import NotKnown
from weft.journal.places import root_of, services_in

if TYPE_CHECKING:
    from weft.cli.spark_options import Asked


def services_at(asked: "Asked") -> list[str]:
    """The services that have a journal in a folder, or that gateways run.

    Raises:
        Unreachable: a gateway does not answer.
    """
    if asked.path is not None:
        return services_in(root_of(asked.path))
    found: set[str] = set()
    for gateway in (asked.gateways or asked.gateway).split(","):
        target = Target(gateway.strip(), asked.service, "", None, is_json=False)
        found |= read(fetch_status(target), GatewayPage).services.keys()
    return sorted(found)


def check_kept(asked: "Asked") -> None:
    """See that a folder has a journal of the service that is to be read.

    Raises:
        NotKnown: it has none.
    """
    if asked.path is None:
        return
    services = services_at(asked)
    if asked.service not in services:
        known = ", ".join(services) or "none"
        raise NotKnown(f"there is no journal of {asked.service!r} in {asked.path}, only of {known}")
