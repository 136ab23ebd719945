"""The chat, as people start it: a gateway, a service in Python, and the page."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

import weft


@pytest.fixture
def chat() -> Iterator[tuple[str, str]]:
    """The address of the page, and of the gateway that it is told of."""
    process = subprocess.Popen(  # ours
        [sys.executable, "-m", "examples.chat", "--listen", "127.0.0.1:0", "--page-port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        found = re.match(r"open (http\S+\?gateway=http://(\S+)) in two tabs", said.readline())
        assert found
        yield found[1], found[2]
        process.terminate()
        process.wait(30)


def test_the_page_is_served_and_the_service_answers(chat: tuple[str, str]) -> None:
    page, gateway = chat
    with urllib.request.urlopen(page, timeout=10) as answer:  # noqa: S310  # our own
        assert b"/weft.js" in answer.read()
    with weft.Connection(gateway, service="chat") as connection:
        known = connection.send_request("quotes.get", {"symbol": "VOD"}, timeout=10)
        assert (known["price"], known["is_known"]) == (71.3, True)
        unknown = connection.send_request("quotes.get", {"symbol": "X"}, timeout=10)
        assert unknown["is_known"] is False
