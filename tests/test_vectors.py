"""The vectors of docs/vectors, which clients in other languages read, hold for this one."""

import json
from pathlib import Path
from typing import Any

import pytest

from weft import Field, FieldType, Message, errors
from weft.errors import BadSubject, WeftError
from weft.wire import frames, subjects
from weft.wire.message.codec import decode_fields

VECTORS = Path(__file__).parent.parent / "docs" / "vectors"


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


def titles(vectors: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(vector, id=vector["title"]) for vector in vectors]


FRAMES = load("frames")
MESSAGES = load("messages")
SUBJECTS = load("subjects")


def error_named(name: str) -> type[WeftError]:
    error: type[WeftError] = getattr(errors, name)
    return error


@pytest.mark.req("MM-8")
@pytest.mark.parametrize("vector", titles(FRAMES["frames"]))
def test_a_frame_says_what_its_vector_says(vector: dict[str, Any]) -> None:
    parsed = frames.parse(bytes.fromhex(vector["hex"]))
    assert parsed == frames.Frame(
        vector["kind"],
        vector["flags"],
        vector["subject"].encode(),
        vector["reply"].encode(),
        bytes.fromhex(vector["body"]),
        vector["origin"],
        vector["publisher"],
        vector["sequence"],
        vector["time_ns"],
    )


@pytest.mark.parametrize("vector", titles(FRAMES["frames"]))
def test_a_frame_is_encoded_and_stamped_as_its_vector_says(vector: dict[str, Any]) -> None:
    data = bytearray(
        frames.encode(
            vector["kind"],
            vector["subject"].encode(),
            bytes.fromhex(vector["body"]),
            vector["reply"].encode(),
            vector["flags"],
        )
    )
    run = frames.Run()
    run.read(data, 0, len(data))
    run.stamp(
        data,
        frames.Stamp(vector["origin"], vector["publisher"], vector["sequence"], vector["time_ns"]),
    )
    assert data.hex() == vector["hex"]


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("vector", titles(FRAMES["refused"]))
def test_a_bad_frame_is_refused_with_the_error_of_its_vector(vector: dict[str, Any]) -> None:
    decoder = frames.Decoder(vector["body_limit_bytes"])
    decoder.feed(bytes.fromhex(vector["hex"]))
    for _ in range(vector["whole_frames_before"]):
        assert decoder.next_frame() is not None
    with pytest.raises(WeftError) as caught:
        decoder.next_frame()
    assert type(caught.value) is error_named(vector["error"])


def built(field: dict[str, Any]) -> Field:
    """The Field that a vector describes."""
    kind = FieldType[field["type"].upper()]
    value = field["value"]
    if kind is FieldType.BLOB:
        value = bytes.fromhex(value)
    elif kind is FieldType.DOUBLE:
        value = float(value)
    elif kind is FieldType.MESSAGE:
        value = Message(*map(built, value))
    elif kind is FieldType.LIST:
        value = [built({"name": "", **item}) for item in value]
    return Field(field.get("name", ""), value, kind)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("vector", titles(MESSAGES["messages"]))
def test_fields_encode_to_the_bytes_of_their_vector(vector: dict[str, Any]) -> None:
    assert Message(*map(built, vector["fields"])).encode().hex() == vector["hex"]


@pytest.mark.parametrize("vector", titles(MESSAGES["messages"]))
def test_a_body_decodes_to_the_fields_of_its_vector(vector: dict[str, Any]) -> None:
    received = Message.from_body(bytes.fromhex(vector["hex"]))
    assert list(received) == [built(field) for field in vector["fields"]]


@pytest.mark.parametrize("vector", titles(MESSAGES["messages"]))
def test_a_body_has_the_json_of_its_vector(vector: dict[str, Any]) -> None:
    received = Message.from_body(bytes.fromhex(vector["hex"]))
    assert received.to_json() == vector["json"]
    assert Message.from_json(vector["json"]).to_json() == vector["json"]


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("vector", titles(MESSAGES["refused"]))
def test_a_bad_body_is_refused_with_the_error_of_its_vector(vector: dict[str, Any]) -> None:
    with pytest.raises(WeftError) as caught:
        decode_fields(bytes.fromhex(vector["hex"]))
    assert type(caught.value) is error_named(vector["error"])


def test_names_are_legal_or_not_as_the_vectors_say() -> None:
    assert all(subjects.is_subject(name.encode()) for name in SUBJECTS["subjects"])
    assert all(subjects.is_pattern(name.encode()) for name in SUBJECTS["patterns"])
    assert not any(subjects.is_subject(name.encode()) for name in SUBJECTS["patterns"])
    illegal = [name.encode() for name in SUBJECTS["illegal"]]
    illegal += map(bytes.fromhex, SUBJECTS["illegal_hex"])
    assert not any(map(subjects.is_pattern, illegal))


@pytest.mark.req("MM-2")
@pytest.mark.parametrize("relation", ["matches", "covers", "overlaps"])
def test_patterns_relate_as_the_vectors_say(relation: str) -> None:
    holds = getattr(subjects, relation)
    for left, right, expected in SUBJECTS[relation]:
        assert holds(left.encode(), right.encode()) is expected, (left, right)


def test_paths_are_subjects_as_the_vectors_say() -> None:
    for path, subject in SUBJECTS["paths"]:
        assert subjects.subject_from_path(path) == subject.encode()
    for path in SUBJECTS["illegal_paths"]:
        with pytest.raises(BadSubject):
            subjects.subject_from_path(path)
