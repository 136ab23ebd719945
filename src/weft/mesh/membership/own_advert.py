"""Adverts of this gateway."""

import msgspec

from weft.broker.service import Service
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.interest.local_interest import OwnInterest
from weft.mesh.links.handshake import Admission, GatewayIntroduction, admission_mac
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import LINKS_MAX, Advert
from weft.mesh.membership.load_level import OwnLoad
from weft.mesh.membership.members import Member
from weft.mesh.protocol import WANTED_ROOM_BYTES, Delta, wanted_bytes
from weft.mesh.settings import Rules

_MS = 1_000_000


class OwnAdvert:
    """Adverts of one gateway; `member` is its entry in the member table."""

    def __init__(self, service: Service, admission: Admission, address: str, rules: Rules) -> None:
        self._admission = admission
        self.max_links = rules.max_links
        self.load = OwnLoad()
        self.is_draining = False
        journal = service.router.journal
        is_of_mesh = journal is not None and journal.is_of_mesh
        self._interest = OwnInterest(journal.patterns if journal and is_of_mesh else ())
        self._interest.change(())
        key = admission.identity.key
        first = Advert(
            key=key,
            admission=admission_mac(admission.secret, key),
            service=service.name,
            number=service.stamp.origin,
            incarnation=service.wall_ns // _MS,
            sequence=1,
            name=service.gateway,
            address=address,
            region=rules.region,
            links=(),
            room=rules.max_links,
            version=self._interest.told.version,
            digest=self._interest.told.digest,
        )
        self.member = Member(adverts.sign(first, admission), 0)
        self.member.wanted = self._interest.told

    def next(
        self, traffic: Traffic, links: dict[int, Link], claimed: int, *, is_leaving: bool = False
    ) -> tuple[adverts.SignedAdvert, Delta | None] | None:
        """Return the next signed advert and interest delta; None if nothing changed.

        `claimed` is an incarnation that another gateway advertises for this one.
        """
        changes = traffic.local_changes()
        change = self._interest.change(changes)
        traffic.activate(changes, self._interest.told.version)
        last = self.member.advert
        near = mesh_links(links)
        numbers = sorted({link.number for link in near if link.is_carrying})
        advert = msgspec.structs.replace(
            last,
            incarnation=last.incarnation if claimed < last.incarnation else claimed + 1,
            links=tuple(numbers[:LINKS_MAX]),
            room=max(0, self.max_links - len(near)),
            version=self._interest.told.version,
            digest=self._interest.told.digest,
            is_leaving=is_leaving,
            is_coarse=self._interest.is_coarse,
            load=self.load.step,
            is_draining=self.is_draining,
        )
        if advert == last:
            return None
        advert = msgspec.structs.replace(advert, sequence=last.sequence + 1)
        delta: Delta | None = None
        size = sum(map(wanted_bytes, change.added)) + sum(map(wanted_bytes, change.removed))
        if 0 < size <= WANTED_ROOM_BYTES:
            delta = Delta(change.added, change.removed)
        return adverts.sign(advert, self._admission), delta

    def introduction(self, links: int, *, is_registering: bool = False) -> GatewayIntroduction:
        """Return the introduction for a handshake."""
        advert = self.member.advert
        return GatewayIntroduction(
            number=advert.number,
            incarnation=advert.incarnation,
            name=advert.name,
            address=advert.address,
            region=advert.region,
            links=links,
            is_registering=is_registering,
        )
