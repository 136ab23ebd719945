import os

from weft.wire.nonces import NONCE_DIGITS, Nonces


def test_a_name_has_64_bits_and_comes_once() -> None:
    nonces = Nonces(os.urandom)
    names = [nonces.take() for _ in range(2000)]
    assert len(set(names)) == 2000
    assert {len(name) for name in names} == {NONCE_DIGITS}
    assert {len(bytes.fromhex(name.decode())) for name in names} == {8}


def test_every_bit_that_is_drawn_is_used_once() -> None:
    drawn: list[bytes] = []

    def draw(size: int) -> bytes:
        drawn.append(os.urandom(size))
        return drawn[-1]

    nonces = Nonces(draw)
    names = [nonces.take() for _ in range(600)]
    every = b"".join(drawn)
    assert set(names) <= {every[at : at + 8].hex().encode() for at in range(0, len(every), 8)}
    assert len(drawn) == 3
