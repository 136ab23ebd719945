"""Which services there are where messages are read."""

from typing import TYPE_CHECKING

from weft.cli.options.target import DEFAULT_SERVICE, Target
from weft.cli.query import GatewayPage, fetch_status, read
from weft.errors import NotKnown
from weft.journal.segment.file_names import root_of, services_in

if TYPE_CHECKING:
    from weft.cli.options.spark import Asked


def services_at(asked: "Asked") -> list[str]:
    """The services that have a journal in a folder or at gateways, or that gateways run.

    Raises:
        Unreachable: a gateway does not answer.
    """
    if asked.path is not None:
        return services_in(root_of(asked.path))
    found: set[str] = set()
    for gateway in (asked.gateways or asked.gateway).split(","):
        target = Target(
            *(gateway.strip(), asked.service, "", asked.tls_ca),
            is_json=False,
            key_file=asked.key_file,
        )
        page = read(fetch_status(target), GatewayPage)
        found |= page.services.keys() | set(page.journals)
    return sorted(found)


def check_there(asked: "Asked") -> None:
    """See that the service that is to be read is there.

    Raises:
        NotKnown: it is not.
        Unreachable: a gateway does not answer.
    """
    services = services_at(asked)
    # That of everybody a gateway always has.
    if asked.service in services or (asked.path is None and asked.service == DEFAULT_SERVICE):
        return
    where = asked.path or asked.gateways or asked.gateway
    known = ", ".join(services) or "none"
    raise NotKnown(f"there is no service {asked.service!r} at {where}, only {known}")
