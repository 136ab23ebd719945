"""Services available at a source of messages."""

from typing import TYPE_CHECKING

from weft.cli.options.target import DEFAULT_SERVICE, CommandTarget
from weft.cli.query import GatewayPage, fetch_status, read
from weft.errors import NotKnown
from weft.journal.segment.file_names import root_of, services_in

if TYPE_CHECKING:
    from weft.cli.options.spark import SparkOptions


def services_at(asked: "SparkOptions") -> list[str]:
    """Return the services with a journal in a folder or at gateways, and running ones.

    Raises:
        Unreachable: A gateway does not answer.
    """
    if asked.path is not None:
        return services_in(root_of(asked.path))
    found: set[str] = set()
    for gateway in (asked.gateways or asked.gateway).split(","):
        target = CommandTarget(
            *(gateway.strip(), asked.service, "", asked.tls_ca),
            is_json=False,
            key_file=asked.key_file,
        )
        page = read(fetch_status(target), GatewayPage)
        found |= page.services.keys() | set(page.journals)
    return sorted(found)


def check_there(asked: "SparkOptions") -> None:
    """Check that the service to read exists.

    Raises:
        NotKnown: Unknown service.
        Unreachable: A gateway does not answer.
    """
    services = services_at(asked)
    # Gateways always have the default service.
    if asked.service in services or (asked.path is None and asked.service == DEFAULT_SERVICE):
        return
    where = asked.path or asked.gateways or asked.gateway
    known = ", ".join(services) or "none"
    raise NotKnown(f"there is no service {asked.service!r} at {where}, only {known}")
