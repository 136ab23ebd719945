import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(name: str, *arguments: str) -> list[str]:
    """What an example prints, if it runs to its end without a word of complaint."""
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_every_example_is_run_here() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert all(path.name in tests for path in EXAMPLES.glob("*.py"))


def test_publish_and_subscribe(gateway: str) -> None:
    assert output_of("publish_subscribe.py", gateway) == [
        "sensors.london.temp: 21.5 C",
        "sensors.paris.temp: 24.0 C",
    ]


def test_request_and_reply(gateway: str) -> None:
    lines = output_of("request_reply.py", gateway)
    assert [line.partition(" from ")[0] for line in lines] == [
        *("VOD: 101.5", "BP: 101.5", "RIO: 101.5", "AZN: 101.5")
    ]


def test_a_channel(gateway: str) -> None:
    first, second, third = output_of("channel.py", gateway)
    assert (first, second) == ("moves.white: e4", "moves.white: Nf3")
    assert third.startswith("a guest: ")


def test_a_gateway_within_a_program() -> None:
    first, second = output_of("embedded_gateway.py")
    assert first.startswith("listening on 127.0.0.1:")
    assert second == "news.today: it works"


def test_middleman(gateway: str) -> None:
    assert output_of("middleman_client.py", gateway) == [
        "PUB ready",
        "REQ tomorrow?",
        "RES 1 ...rain",
    ]
