import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadOption
from weft.transports.json.datagrams import text_of
from weft.transports.tunnel.formats import (
    FormatSettings,
    FormatValues,
    checked_callback,
    formats_of,
)

PLACE = FormatValues(b"ID", b"/_INBOX/1/2")
OWN = FormatSettings(
    header="<%(tunnel)s %(path)s %(data)s>",
    envelope="[%(id)s %(path)s %(tunnel)s %(data)s]",
    keepalive="~%(tunnel)s",
    footer="</%(tunnel)s %(data)s>",
)


@pytest.mark.req("TUN-5")
def test_a_format_is_four_texts_with_places() -> None:
    form = formats_of({"own": OWN})["own"]
    assert form.header(PLACE, b"{}") == b"<ID /_INBOX/1/2 {}>"
    assert form.envelope(PLACE, "7.42", "/a", b"{}") == b"[7.42 /a ID {}]"
    assert form.keepalive(PLACE) == b"~ID"
    assert form.footer(PLACE, b"{}") == b"</ID {}>"


def test_every_format_has_a_name() -> None:
    assert sorted(formats_of({})) == ["multipart", "ndjson", "poll", "script", "sse"]
    assert sorted(formats_of({"own": OWN}, has_jsonp=True))[0] == "jsonp"


def test_an_operator_may_define_what_is_built_in_anew() -> None:
    form = formats_of({"sse": FormatSettings(keepalive_s=5.0)})["sse"]
    assert form.keepalive_s == 5.0


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("own", {"header": "%(id)s"}, "formats.own.header: '%(id)s' cannot stand here"),
        ("own", {"envelope": "%(secret)s"}, "formats.own.envelope: '%(secret)s' cannot"),
        ("own", {"keepalive": "%(data)s"}, "formats.own.keepalive: '%(data)s' cannot"),
        ("own", {"footer": "100%"}, "formats.own.footer: '%' cannot stand here"),
        ("own", {"content_type": "%(path)s/x"}, "formats.own.content_type: '%(path)s' cannot"),
        ("own", {"content_type": "a/b\r\nX: y"}, "formats.own.content_type"),
        ("own", {"content_type": "a/b\n"}, "formats.own.content_type"),
        ("own", {"content_type": "é/b"}, "formats.own.content_type"),
        ("own", {"content_type": ""}, "formats.own.content_type"),
        ("own", {"encoding": "rot13"}, "formats.own.encoding is 'rot13'; it must be one of json"),
        ("own", {"content_type": "text/html"}, "could become markup"),
        ("own", {"content_type": "image/svg+xml", "encoding": "sse"}, "could become markup"),
        ("own", {"content_type": "application/JavaScript"}, "could become markup"),
        ("own", {"keepalive_s": 0.0}, "formats.own.keepalive_s is 0"),
        ("own", {"keepalive_s": float("nan")}, "formats.own.keepalive_s is nan"),
        ("own", {"keepalive_s": 1e9}, "formats.own.keepalive_s is 1"),
        ("poll", {}, "formats.poll: this one is built in"),
        ("jsonp", {}, "formats.jsonp: this one is built in"),
        ("Own", {}, "'Own' is not 1 to 32 small letters"),
        ("a.b", {}, "is not 1 to 32 small letters"),
        ("a\n", {}, "is not 1 to 32 small letters"),
        ("", {}, "is not 1 to 32 small letters"),
    ],
)
def test_a_format_that_cannot_be_is_refused_by_its_key(
    name: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadOption) as caught:
        formats_of({name: FormatSettings(**changes)})
    assert said in str(caught.value)


def test_formats_are_not_without_end() -> None:
    with pytest.raises(BadOption, match="65 formats are over the limit of 64"):
        formats_of({f"f{number}": OWN for number in range(65)})


@pytest.mark.parametrize("name", ["f", "_f1", "$", "jQuery1_2", "a.b.c.d", "x" * 32])
def test_a_callback_is_a_plain_name(name: str) -> None:
    assert checked_callback(name) == name.encode()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "1a",
            "a.",
            ".a",
            "a..b",
            "a.b.c.d.e",
            "x" * 33,
            "a b",
            "alert(1)//",
            "f\n",
            "f\r\nX:",
        ),
        *("f;g", "<script>", "é", "a[0]", "a-b", "f\u2028", "f%0a"),
    ],
)
def test_nothing_else_may_be_a_callback(name: str) -> None:
    with pytest.raises(BadOption, match="callback is the name of a function"):
        checked_callback(name)


def test_what_does_not_name_the_tunnel_is_the_same_for_all() -> None:
    known = formats_of({"own": OWN})
    assert [name for name, form in known.items() if not form.is_same_for_all] == [
        "multipart",
        "own",
    ]


@pytest.mark.req("TUN-6")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_data_is_never_taken_for_the_end_of_a_part(data: str) -> None:
    form = formats_of({})["multipart"]
    text = text_of({"data": f"{data}\r\n--weft-ID--\r\n"})
    said = form.envelope(PLACE, "7.1", "/a", text)
    assert said.count(b"\r\n--weft-ID") == 1
    assert json.loads(said.partition(b"\r\n\r\n")[2].partition(b"\r\n--weft-ID\r\n")[0])


def test_a_held_answer_is_one_list() -> None:
    known = formats_of({}, has_jsonp=True)
    assert known["poll"].whole(PLACE, [b"1", b"2"]) == b"[1,2]\n"
    place = FormatValues(b"ID", b"/p", b"page.got")
    assert known["jsonp"].whole(place, [b"1"]) == b"/**/page.got([1]);\n"
