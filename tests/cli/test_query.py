import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import weft
from weft.cli.options.target import CommandTarget
from weft.cli.query import ConnectionRow, GatewayPage, ask, check_service, fetch_status, read
from weft.errors import BadOption, NoSuchService, NotKnown, ProtocolError, Unreachable


def target_at(gateway: str) -> CommandTarget:
    return CommandTarget(gateway=gateway, service="default", name="", tls_ca=None, is_json=False)


@contextmanager
def page(status: int, body: bytes) -> Iterator[str]:
    """The address of a web server that is no gateway."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_the_status_page_tells_of_the_gateway(gateway: str) -> None:
    answer = fetch_status(target_at(gateway))
    told = read(answer, GatewayPage)
    assert told.gateway == "tested"
    assert told.state == "ready"


def test_a_request_is_answered_by_the_gateway(gateway: str) -> None:
    with weft.Connection(gateway, name="asked.1") as connection:
        answer = ask(connection, "connections", {"name": "asked.1"})
        [row] = read(answer["connections"], list[ConnectionRow])
        assert row.name == "asked.1"
        with pytest.raises(NotKnown):
            ask(connection, "the.impossible")


def test_a_service_that_does_not_run_is_told_from_one_that_does(gateway: str) -> None:
    with weft.Connection(gateway):
        assert check_service(target_at(gateway))["gateway"] == "tested"
    with pytest.raises(NoSuchService, match="'unheard-of', only "):
        check_service(dataclasses.replace(target_at(gateway), service="unheard-of"))


def test_what_an_older_gateway_leaves_out_has_a_default() -> None:
    assert read({"name": "a", "unheard_of": 1}, ConnectionRow) == ConnectionRow(name="a")


def test_an_answer_of_another_shape_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="cannot be read"):
        read([{"number": "seven"}], list[ConnectionRow])


@pytest.mark.parametrize(
    ("status", "body", "part"),
    [
        (404, b"", "answers /status with 404"),
        (200, b"<html>", " is not a Weft gateway"),
        (200, b"[]", " is not a Weft gateway"),
    ],
)
def test_what_is_no_gateway_is_told_apart(status: int, body: bytes, part: str) -> None:
    with page(status, body) as address, pytest.raises(Unreachable) as refused:
        fetch_status(target_at(address))
    assert part in str(refused.value)


def test_nobody_there_is_told() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        fetch_status(target_at("127.0.0.1:1"))


def test_a_file_without_a_key_is_not_held_against_the_gateway(gateway: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("no key")
    with pytest.raises(BadOption, match="does not end with a key"):
        fetch_status(dataclasses.replace(target_at(gateway), key_file=str(file)))
