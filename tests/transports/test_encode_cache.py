from weft.transports.encode_cache import Shared
from weft.wire.frames import Kind, encode


def test_what_was_said_once_is_known_by_dialect_and_frames() -> None:
    shared = Shared()
    shared.keep("json", b"frames", b"said")
    assert shared.get("json", b"frames") == b"said"
    assert shared.get("text", b"frames") is None
    assert shared.get("json", b"other") is None


def test_it_never_holds_more_than_its_bound() -> None:
    shared = Shared(100)
    for number in range(50):
        shared.keep("json", b"%d" % number, b"x" * 30)
        assert shared.get("json", b"%d" % number) is not None
        assert sum(len(key[1]) + len(said) for key, said in shared._known.items()) <= 100


def test_what_is_over_the_bound_by_itself_is_kept_by_nobody() -> None:
    shared = Shared(100)
    shared.keep("json", b"small", b"x")
    shared.keep("json", b"large", b"x" * 1000)
    assert shared.get("json", b"large") is None
    assert shared.get("json", b"small") == b"x"


def test_what_is_kept_again_counts_once() -> None:
    shared = Shared(100)
    for _ in range(10):
        shared.keep("json", b"frames", b"x" * 30)
    shared.keep("json", b"other", b"x" * 30)
    assert shared.get("json", b"frames") is not None


def test_messages_are_put_into_words_once_and_everything_else_each_time() -> None:
    shared = Shared()
    put: list[bytes] = []

    def words(frame: bytes) -> bytes:
        put.append(frame)
        return b"" if frame[4] == Kind.PING else b"w"

    message, ping = encode(Kind.MESSAGE, b"a"), encode(Kind.PING)
    for frames in (message + message, message + ping):
        assert shared.said("json", frames, words, joint=b",") in (b"w,w", b"w")
        assert shared.said("json", frames, words, joint=b",") in (b"w,w", b"w")
    assert len(put) == 2 + 2 * 2


def test_a_dialect_may_have_messages_that_are_not_for_all() -> None:
    shared = Shared()
    frames = encode(Kind.MESSAGE, b"a")
    assert shared.said("text", frames, lambda _: b"mine", is_for_all=lambda _: False) == b"mine"
    assert shared.get("text", frames) is None
