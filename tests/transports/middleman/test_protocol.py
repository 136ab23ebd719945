import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.errors import BadOption, BadSubject, UsageError
from weft.transports.middleman.protocol import (
    HEAD_MAX,
    HEADERS_MAX,
    NO_TARGET,
    REQUEST_ID_MAX,
    MiddlemanMessage,
    gist,
    is_request_id,
    read,
    written,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
# Bodies made of what the grammar is made of.
tricky = st.text(st.sampled_from(".\r\n a:"), max_size=12)
targets = st.sampled_from(["a", "weather.london", "Wetter.Köln", "a b", "_WEFT.ask.status", "…"])
request_ids = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=9
).filter(lambda text: text == text.strip(" \t"))


@pytest.mark.req("MID-4")
def test_a_message_is_a_command_a_target_headers_a_body_and_a_dot() -> None:
    text = "REQ weather.london\nReqID:7\nAccept: all \n\nhow is it?\nand tomorrow?\n.\n"
    headers = {"reqid": "7", "accept": "all"}
    assert read(text) == MiddlemanMessage(
        "REQ", "weather.london", headers, "how is it?\nand tomorrow?"
    )


@pytest.mark.req("MID-4")
@pytest.mark.parametrize(
    "text",
    [
        "PUB a\nX:1\n\none\n.\n",
        "PUB a\r\nX:1\r\n\r\none\r\n.\r\n",
        # As clients do that end with a break of another kind than the others.
        "PUB a\nX:1\n\none\r\n.\r\n",
        "PUB a\nX:1\n\none\n.\r\n",
        "PUB a\r\nX:1\n\r\none\n.\n",
    ],
)
def test_lines_end_with_lf_or_crlf(text: str) -> None:
    assert read(text) == MiddlemanMessage("PUB", "a", {"x": "1"}, "one")


@pytest.mark.req("MID-5")
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("", ""),
        (".", ".."),
        ("..", "..."),
        (".a", "..a"),
        ("a.", "a."),
        ("no final newline", "no final newline"),
        ("final newline\n", "final newline\n"),
        ("\n", "\n"),
        ("a\n.\nb", "a\n..\nb"),
        ("a\r\n.\r\nb", "a\r\n..\r\nb"),
        (".\r", "..\r"),
        ("\r", "\r"),
        ("a\x85.\u2028.b", "a\x85.\u2028.b"),
    ],
)
def test_dots_that_begin_lines_are_doubled_on_the_way(body: str, line: str) -> None:
    text = f"PUB a\n\n{line}\n.\n"
    assert written("PUB", "a", body) == text
    assert read(text).body == body


@pytest.mark.req("MID-5")
@given(texts | tricky)
@example("\r\n.\r\n")
def test_every_body_comes_out_as_it_went_in(body: str) -> None:
    assert read(written("PUB", "a", body)).body == body


@pytest.mark.req("MID-5")
@given(tricky)
def test_every_body_comes_out_of_crlf_as_it_went_in(body: str) -> None:
    text = written("PUB", "a", body).replace("PUB a\n\n", "PUB a\r\n\r\n")
    assert read(text.removesuffix("\n.\n") + "\r\n.\r\n").body == body


@pytest.mark.req("MID-5")
@pytest.mark.parametrize("end", [".\n", ".\r\n", "\n.\n", "\r\n.\r\n", "\n.\r\n"])
def test_a_body_may_have_no_line_at_all(end: str) -> None:
    assert read(f"SUB a\n\n{end}").body == ""


def test_a_dot_that_was_not_doubled_is_dropped_as_in_smtp() -> None:
    assert read("PUB a\n\n.a\n.\n").body == "a"


@pytest.mark.parametrize(
    "body",
    [
        "first\n.\nPUB b\n\nsecond",
        "first\r\n.\r\nPUB b\r\n\r\nsecond",
        "first\n.\r\nPUB b\n\nsecond",
        ".\nPUB b\n\nsecond",
        "first\n.",
        ".",
        ".\r",
    ],
)
@pytest.mark.parametrize("end", ["\n.\n", "\r\n.\r\n"])
def test_a_dot_alone_before_the_end_smuggles_nothing(body: str, end: str) -> None:
    with pytest.raises(UsageError, match="holds one message"):
        read(f"PUB a\n\n{body}{end}")


@pytest.mark.parametrize(
    "rest", ["", "body", "body\n", "body\n..\n", "body.\n", "body\n.", "body\n.\n\n", ".", ".\r"]
)
def test_a_message_without_its_end_is_refused(rest: str) -> None:
    with pytest.raises(UsageError, match="ends with a line that is a single dot"):
        read(f"PUB a\n\n{rest}")


@pytest.mark.parametrize("text", ["", "PUB", "PUB a", "PUB a\n", "PUB a\n.\n", "PUB a\nX:1\n.\n"])
def test_a_head_without_its_end_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="an empty line must follow"):
        read(text)


def test_a_head_is_bounded() -> None:
    value = "x" * (HEAD_MAX - len("PUB a\nX:\n\n"))
    assert read(f"PUB a\nX:{value}\n\n.\n").headers == {"x": value}
    with pytest.raises(UsageError, match=f"within {HEAD_MAX} characters"):
        read(f"PUB a\nX:{value}x\n\n.\n")


def test_headers_are_bounded_in_number() -> None:
    headers = "".join(f"X{number}:1\n" for number in range(HEADERS_MAX))
    assert len(read(f"PUB a\n{headers}\n.\n").headers) == HEADERS_MAX
    with pytest.raises(BadOption, match=f"over the limit of {HEADERS_MAX}"):
        read(f"PUB a\n{headers}Y:1\n\n.\n")


@pytest.mark.parametrize(
    "line",
    [
        "no colon",
        ":no name",
        "a space :1",
        " folded: 1",
        "Größe:1",
        f"{'x' * 65}:1",
        "X:1\rReqID:2",
        "X:1\x00",
        "X:1\x85ReqID:2",
        "X:1\u2028ReqID:2",
        "X\r:1",
    ],
)
def test_what_is_no_header_is_refused(line: str) -> None:
    with pytest.raises(BadOption, match="is no header"):
        read(f"REQ a\n{line}\n\n.\n")


@pytest.mark.parametrize("lines", ["ReqID:1\nreqid:2", "X:1\nx:1"])
def test_a_header_occurs_once(lines: str) -> None:
    with pytest.raises(BadOption, match="occurs twice"):
        read(f"REQ a\n{lines}\n\n.\n")


@pytest.mark.parametrize("name", ["ReqID", "reqid", "REQID", "ReqId"])
def test_names_of_headers_go_by_their_letters_alone(name: str) -> None:
    assert read(f"REQ a\n{name}: 7\n\n.\n").request_id == "7"


@pytest.mark.req("MID-8")
@pytest.mark.parametrize("header", ["", "ReqID:\n", "ReqID: \t\n", f"ReqID:{'x' * 129}\n"])
def test_a_request_has_a_request_id(header: str) -> None:
    with pytest.raises(BadOption, match=f"ReqID of 1 to {REQUEST_ID_MAX} characters"):
        _ = read(f"REQ a\n{header}\n.\n").request_id


@given(targets, request_ids, texts)
def test_what_was_written_is_read_again(target: str, request_id: str, body: str) -> None:
    said = read(written("RES", target, body, ReqID=request_id))
    assert said == MiddlemanMessage("RES", target, {"reqid": request_id}, body)
    assert said.request_id == request_id
    assert said.subject == target.encode()


@given(texts | tricky.map(lambda text: f"PUB a\n{text}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        said = read(text)
    except UsageError:
        target, request_id = gist(text)
        assert "\n" not in target + request_id
    else:
        again = read(written(said.command, said.target, said.body, **said.headers))
        assert again == said


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("", "it is empty"),
        ("a..b", "element 2 is empty"),
        ("a/b", "'/' or a control character"),
        ("a\tb", "'/' or a control character"),
        ("a.*", "wildcard"),
        ("a.>", "wildcard"),
        ("x" * 256, "limit of 255"),
        ("a\x85b", "line break"),
        ("a\u2028ReqID:1", "line break"),
        (" a", "a space around it"),
        ("a ", "a space around it"),
    ],
)
def test_a_target_is_a_subject_or_the_rule_is_named(target: str, rule: str) -> None:
    said = read(f"PUB {target}\n\n.\n")
    with pytest.raises(BadSubject, match=rule):
        _ = said.subject
    assert gist(f"PUB {target}\n\n.\n") == (NO_TARGET, "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", (NO_TARGET, "")),
        ("PUB", (NO_TARGET, "")),
        ("PUB a", ("a", "")),
        ("REQ a\r\nReqID: 7\r\n", ("a", "7")),
        ("REQ a\nX:1\nreqid:7\n\nno end", ("a", "7")),
        ("PUB a\n\nReqID:7\n.\n", ("a", "")),
        ("REQ a\nReqID:\x00\n\n.\n", ("a", "")),
        ("REQ a\n" + "X:1\n" * HEADERS_MAX + "ReqID:7\n\n.\n", ("a", "")),
        ("x" * (HEAD_MAX + 1), (NO_TARGET, "")),
    ],
)
def test_what_is_told_back_of_a_refused_text(text: str, told: tuple[str, str]) -> None:
    assert gist(text) == told


@pytest.mark.parametrize("text", ["1", "x" * REQUEST_ID_MAX, "ümlaut 7", "a:b"])
def test_what_a_request_can_be_known_by(text: str) -> None:
    assert is_request_id(text)


@pytest.mark.parametrize("text", ["", "x" * (REQUEST_ID_MAX + 1), "a\nb", "a\rb", "\x7f", "\u2029"])
def test_what_a_request_cannot_be_known_by(text: str) -> None:
    assert not is_request_id(text)
