import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadOption
from weft.transports.tunnel.templates import TEXT_MAX, Template


def test_places_are_filled_in() -> None:
    template = Template("id: %(id)s, 100 %%, %(data)s%(id)s", ("id", "data"))
    assert template.filled(id=b"7", data=b"x") == b"id: 7, 100 %, x7"
    assert template.names == ("id", "data", "id")


@pytest.mark.parametrize(
    "text",
    ["%(no)s", "%", "a % b", "%d", "%(id)d", "%(id", "%()s", "%(id)", "%%%", "%(__class__)s"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match=r"cannot stand here: there are %\(id\)s, and %%"):
        Template(text, ("id",))


def test_a_template_is_not_without_end() -> None:
    with pytest.raises(BadOption, match=f"over the limit of {TEXT_MAX}"):
        Template("x" * (TEXT_MAX + 1), ())


def test_a_template_is_text() -> None:
    with pytest.raises(BadOption, match="not Unicode"):
        Template("\ud800", ())


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary())
def test_what_is_filled_in_is_not_looked_at_again(text: str, data: bytes) -> None:
    template = Template(text.replace("%", "%%") + "%(data)s", ("data",))
    assert template.filled(data=data + b"%(data)s%%") == text.encode() + data + b"%(data)s%%"
