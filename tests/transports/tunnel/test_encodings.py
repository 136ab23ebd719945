import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.transports.json.datagrams import text_of
from weft.transports.tunnel.encodings import ENCODINGS, in_base64, in_lines, in_script

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
NASTY = st.sampled_from(
    ["</script>", "<!--", "-->", "\u2028", "\u2029", "\n\n", "\r", "&lt;", "]]>", "'", '"', "\\"]
)
DATA = st.lists(TEXTS | NASTY, max_size=6).map("".join)


@pytest.mark.req("TUN-6")
@given(DATA)
def test_nothing_in_a_script_can_end_it_and_the_script_reads_the_same(data: str) -> None:
    said = in_script(text_of({"data": data}))
    for char in ("<", ">", "&", "\u2028", "\u2029", "\n", "\r"):
        assert char.encode() not in said
    assert json.loads(said) == {"data": data}


@pytest.mark.req("TUN-6")
@given(DATA)
def test_an_event_is_one_event_whatever_is_in_it(data: str) -> None:
    said = in_lines(text_of({"data": data}))
    assert b"\n" not in said
    assert b"\r" not in said
    assert json.loads(said) == {"data": data}


@pytest.mark.req("TUN-6")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_of_an_event_begins_with_its_field(end: bytes) -> None:
    assert in_lines(b"a" + end + end + b"b") == b"a\ndata: \ndata: b"


@pytest.mark.req("TUN-6")
@given(DATA)
def test_base64_reads_the_same(data: str) -> None:
    text = text_of({"data": data})
    assert base64.b64decode(in_base64(text)) == text


@pytest.mark.parametrize("path", ["/</script>", "/a\u2028b", '/"', "/\\", "/'", "/&"])
def test_a_path_stays_within_the_quotes_of_a_script(path: str) -> None:
    said = ENCODINGS["script"].of_path(path)
    assert not set(said.decode()) & set("<>&'\u2028")
    assert json.loads(b'"' + said + b'"') == path


@pytest.mark.parametrize("path", ['/a"b', "/\\"])
def test_a_path_stays_within_the_quotes_of_json(path: str) -> None:
    assert json.loads(b'"' + ENCODINGS["json"].of_path(path) + b'"') == path


def test_a_path_of_an_event_is_as_it_is() -> None:
    assert ENCODINGS["sse"].of_path("/a/é") == "/a/é".encode()
    assert base64.b64decode(ENCODINGS["base64"].of_path("/a/b")) == b"/a/b"
