"""What a gateway says about itself, each time that something is new."""

from tests.mesh.gateways import Gateway, wanted
from tests.mesh.impostor import SERVICE
from tests.mesh.mesh import admission_of

from weft.mesh.interest.interest_set import digest_of
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import SignedAdvert
from weft.mesh.membership.own_advert import OwnAdvert
from weft.mesh.protocol import AdvertWord, Delta
from weft.mesh.settings import Rules


class Scene:
    """One gateway that has no links."""

    def __init__(self) -> None:
        self.gateway = Gateway(1)
        rules = Rules(max_links=5, region="north")
        self.admission = admission_of(1)
        self.own = OwnAdvert(self.gateway.service, self.admission, "a:1", rules)

    def next(
        self, claimed: int = 0, *, is_leaving: bool = False
    ) -> tuple[SignedAdvert, Delta | None] | None:
        said = self.own.next(self.gateway.traffic, {}, claimed, is_leaving=is_leaving)
        if said is not None:
            self.own.member.signed = said[0]
        return said


def test_the_first_says_who_and_where_it_is_and_that_it_has_room() -> None:
    advert = Scene().own.member.advert
    assert (advert.number, advert.sequence, advert.room, advert.links) == (1, 1, 5, ())
    assert (advert.address, advert.region, advert.version) == ("a:1", "north", 0)


def test_others_take_what_is_said() -> None:
    scene = Scene()
    scene.gateway.local(b"a")
    said = scene.next()
    assert said is not None
    signed = said[0]
    word = AdvertWord(signed.said, signed.signature)
    adverts.check(word, adverts.read(word), scene.admission, SERVICE)


def test_nothing_is_said_if_nothing_is_new() -> None:
    assert Scene().next() is None


def test_what_is_wanted_is_said_with_its_change() -> None:
    scene = Scene()
    local = scene.gateway.local(b"a", b"b")
    said = scene.next()
    assert said is not None
    signed, delta = said
    assert delta is not None
    assert set(delta.added) == {wanted(b"a"), wanted(b"b")}
    assert (signed.advert.version, signed.advert.sequence) == (1, 2)
    assert signed.advert.digest == digest_of(delta.added)
    local.peer.end(None)
    scene.gateway.flush()
    said = scene.next()
    assert said is not None
    assert said[0].advert.digest == 0
    assert said[0].advert.version == 2


def test_a_change_that_is_too_large_for_a_word_is_left_to_be_asked_for() -> None:
    scene = Scene()
    scene.gateway.local(*(b"%d.%b" % (each, b"x" * 120) for each in range(4000)))
    said = scene.next()
    assert said is not None
    assert said[0].advert.version == 1
    assert said[1] is None
    assert not said[0].advert.is_coarse


def test_a_later_life_than_this_is_refuted_by_one_after_it() -> None:
    scene = Scene()
    life = scene.own.member.advert.incarnation
    assert scene.next(life - 1) is None
    said = scene.next(life + 7)
    assert said is not None
    assert said[0].advert.incarnation == life + 8
    assert scene.next(life + 7) is None


def test_it_says_that_it_leaves() -> None:
    said = Scene().next(is_leaving=True)
    assert said is not None
    assert said[0].advert.is_leaving


def test_it_says_how_busy_it_is_and_that_it_drains() -> None:
    scene = Scene()
    for _ in range(9):
        scene.gateway.local()
    scene.own.load.look(scene.gateway.service)
    said = scene.next()
    assert said is not None
    assert (said[0].advert.load, said[0].advert.is_draining) == (4, False)
    scene.own.is_draining = True
    said = scene.next()
    assert said is not None
    assert said[0].advert.is_draining
    assert scene.next() is None


def test_it_introduces_itself_as_it_advertises_itself() -> None:
    scene = Scene()
    introduction = scene.own.introduction(3, is_registering=True)
    advert = scene.own.member.advert
    assert (introduction.number, introduction.incarnation) == (1, advert.incarnation)
    assert (introduction.links, introduction.is_registering) == (3, True)
