import pytest

from weft.errors import BadOption
from weft.wire.address import Address, addresses_from


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7411", Address("127.0.0.1", 7411, False)),
        ("gateway.example", Address("gateway.example", 7411, False)),
        ("tcp://gateway:80", Address("gateway", 80, False)),
        ("tls://gateway:443", Address("gateway", 443, True)),
        ("[::1]:99", Address("::1", 99, False)),
        ("tls://[::1]", Address("::1", 7411, True)),
        ("gateway.example.:80", Address("gateway.example.", 80, False)),
        ("bücher.example", Address("bücher.example", 7411, False)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: Address) -> None:
    assert addresses_from(text) == (address,)


@pytest.mark.parametrize("text", ["tcp://a:80", "tls://[::1]:7411"])
def test_an_address_is_shown_as_it_can_be_given(text: str) -> None:
    assert str(addresses_from(text)[0]) == text


def test_several_come_as_a_list_or_with_commas() -> None:
    assert addresses_from("a:1, tls://b:2") == addresses_from(["a:1", "tls://b:2"])


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "a:",
            "a:0",
            "a:65536",
            "a:x",
            "a:¹",
            ":80",
            "http://a:80",
            "a:80/x",
            "u@a:80",
            "::1",
        ],
        *["a..b", "a..b:80", "x" * 64, "a\0b:80"],
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="address"):
        addresses_from(text)


def test_no_address_at_all_is_refused() -> None:
    with pytest.raises(BadOption, match="no gateway address"):
        addresses_from([])
