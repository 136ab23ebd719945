import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.desk import batch_of, message

from weft.broker.journal.batcher import BLOCK_HEADER_BYTES
from weft.journal.segment.blocks import (
    UNKNOWN_SALT,
    Block,
    BlockKind,
    Damage,
    about_block,
    about_in,
    block_at,
    blocks_in,
    end_block,
    resalted,
    salt_of,
    seal_batch,
)

SALT = 0x0123456789ABCDEF


def sealed(count: int = 30, per_block: int = 10) -> bytes:
    batch = batch_of([message(number) for number in range(count)], 0, per_block)
    seal_batch(batch, SALT)
    return bytes(batch.data[batch.start : batch.end])


DATA = about_block(b"about", 0, SALT) + sealed() + end_block(30, SALT)
STARTS = [found.start for found in blocks_in(DATA)]


def test_blocks_are_found_one_after_the_other() -> None:
    found = [each for each in blocks_in(DATA) if isinstance(each, Block)]
    assert [(each.kind, each.frames, each.first) for each in found] == [
        (BlockKind.ABOUT, 0, 0),
        (BlockKind.FRAMES, 10, 0),
        (BlockKind.FRAMES, 10, 10),
        (BlockKind.FRAMES, 10, 20),
        (BlockKind.END, 0, 30),
    ]
    assert about_in(DATA, found[0]) == b"about"
    assert DATA[found[1].body : found[1].end] == b"".join(message(n) for n in range(10))
    assert [each.start for each in found[1:]] == [each.end for each in found[:-1]]


def test_they_can_be_read_from_one_on() -> None:
    assert [each.start for each in blocks_in(DATA, STARTS[2], SALT)] == STARTS[2:]


def test_a_memoryview_does_as_well() -> None:
    assert list(blocks_in(memoryview(DATA))) == list(blocks_in(DATA))


@given(st.integers(0, 8 * len(DATA) - 1))
def test_every_flipped_bit_is_found_and_costs_one_block(bit: int) -> None:
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    found = list(blocks_in(bytes(data)))
    damages = [each for each in found if isinstance(each, Damage)]
    assert len(damages) == 1
    start = max(each for each in STARTS if each <= bit // 8)
    assert damages[0].start == start
    assert damages[0].is_tail == (start == STARTS[-1])
    assert len(found) == len(STARTS)


@given(st.integers(1, len(DATA) - 1))
def test_a_torn_end_is_found_wherever_it_is(size: int) -> None:
    found = list(blocks_in(DATA[:size], salt=SALT))
    whole = [each for each in found if isinstance(each, Block)]
    end = whole[-1].end if whole else 0
    assert whole == list(blocks_in(DATA))[: len(whole)]
    if end < size:
        torn = found[-1]
        assert isinstance(torn, Damage)
        assert (torn.start, torn.end, torn.is_tail) == (end, size, True)


def test_zeros_where_blocks_should_be_are_damage() -> None:
    found = list(blocks_in(DATA + bytes(5000)))
    assert isinstance(found[-1], Damage)
    assert (found[-1].start, found[-1].end) == (len(DATA), len(DATA) + 5000)


@given(st.integers(0, 8 * (STARTS[1]) - 1))
def test_damage_at_the_beginning_of_a_segment_leaves_its_salt(bit: int) -> None:
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    assert salt_of(bytes(data)) == SALT


def test_a_full_segment_without_its_beginning_has_its_salt_at_the_end() -> None:
    data = bytes(100) + DATA[100:]
    assert salt_of(data) == UNKNOWN_SALT
    assert [type(each) for each in blocks_in(data)] == [Damage]
    assert salt_of(data, is_full=True) == SALT
    assert len(list(blocks_in(data, salt=SALT))) == len(STARTS) - 1


def test_a_block_of_another_salt_is_none() -> None:
    data = DATA + end_block(30, SALT + 1)
    assert isinstance(list(blocks_in(data))[-1], Damage)
    assert block_at(data, len(DATA), SALT) is None


@pytest.mark.parametrize("position", [(1 << 63) - 2, 30 + 10_000])
def test_a_position_that_cannot_follow_is_damage(position: int) -> None:
    (*_, found) = blocks_in(DATA + end_block(position, SALT))
    assert isinstance(found, Damage)
    assert found.why == f"position {position} cannot follow"


def test_a_salt_is_changed_without_the_body_being_looked_at() -> None:
    block = block_at(DATA, STARTS[2], SALT)
    assert block is not None
    other = resalted(block, 7) + DATA[block.body : block.end]
    (found,) = blocks_in(other, salt=7)
    assert isinstance(found, Block)
    assert (found.first, found.frames, found.salt) == (10, 10, 7)


def test_blocks_are_found_across_the_pieces_that_are_searched() -> None:
    size = 1 << 20
    for shift in range(-13, 2):
        data = b"x" * (size + shift) + end_block(3, SALT)
        damage, block = blocks_in(data, salt=SALT)
        assert isinstance(damage, Damage)
        assert (damage.end, block.start) == (size + shift, size + shift)


def test_a_header_alone_tells_of_a_body_that_is_not_there() -> None:
    block = block_at(DATA[: STARTS[1] + BLOCK_HEADER_BYTES], STARTS[1], SALT)
    assert block is not None
    assert (block.first, block.frames) == (0, 10)
    assert block_at(DATA, STARTS[1] + 1, SALT) is None
