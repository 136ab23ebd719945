"""SIGTERM and SIGHUP under load: nothing that was confirmed is lost."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually
from tests.attacks.stranger import CONNECT, Stranger, fields, message, subscribe
from tests.faults.stream import streaming

from weft.wire.frames import Flag, Frame, Kind

Serve = Callable[..., GatewayProcess]


def await_log(gateway: GatewayProcess, text: str) -> None:
    """Wait until the gateway has logged something."""
    eventually(lambda: text in gateway.log, lambda: f"{text!r} is not in {gateway.log}")


def speak_until_goodbye(speaker: Stranger) -> list[Frame]:
    """Say things that want an answer, a hundred at a time; everything that is answered."""
    load = b"".join(message(b"load.a", bytes(500), flags=Flag.ANSWER) for _ in range(100))
    told: list[Frame] = []
    is_parting = False
    while not is_parting:
        speaker.send(load)
        answered = 0
        while answered < 100:
            told.append(speaker.hear())
            answered += told[-1].kind == Kind.OK
            is_parting = is_parting or told[-1].kind == Kind.GOODBYE
    return told


def test_a_drain_delivers_what_was_acknowledged_and_says_goodbye(serve: Serve) -> None:
    gateway = serve({"drain_s": 1000.0})
    heard: list[Frame] = []
    with (
        Stranger(gateway.port, CONNECT + subscribe(b"load.>")) as listener,
        Stranger(gateway.port) as speaker,
        ThreadPoolExecutor() as threads,
    ):
        listener.hear_until_pong()
        listening = threads.submit(heard.extend, listener.frames())
        speaking = threads.submit(speak_until_goodbye, speaker)
        eventually(lambda: gateway.service()["status"]["deliveries"] > 1000, "nothing is heard")
        gateway.process.send_signal(signal.SIGTERM)
        told = speaking.result()
        acknowledged = [frame.sequence for frame in told if frame.kind == Kind.OK]
        eventually(lambda: len(heard) > len(acknowledged), lambda: f"{len(heard)} were heard")
        # Both heed the goodbye now, and so the drain is over long before its time.
        speaker.end_sending()
        listener.end_sending()
        assert gateway.process.wait() == 0
        listening.result()
    delivered = [frame.sequence for frame in heard if frame.kind == Kind.MESSAGE]
    assert delivered == acknowledged
    goodbyes = [frame for frame in told + heard if frame.kind == Kind.GOODBYE]
    assert [fields(frame)["reason"] for frame in goodbyes] == ["draining"] * 2


def test_whoever_comes_to_a_gateway_that_drains_is_turned_away(serve: Serve) -> None:
    gateway = serve({"drain_s": 1.0})
    with Stranger(gateway.port) as client, Stranger(gateway.port, CONNECT[:10]) as half:
        client.hear(Kind.WELCOME)
        gateway.process.send_signal(signal.SIGTERM)
        assert half.hear_end() == "Draining"
        assert client.hear(Kind.GOODBYE)
        with pytest.raises(ConnectionError):
            Stranger(gateway.port)
    assert gateway.process.wait() == 0


def test_a_second_signal_ends_a_drain_at_once(serve: Serve) -> None:
    gateway = serve({"drain_s": 1000.0, "drain_stall_s": 1000.0})
    with Stranger(gateway.port) as client:
        client.hear(Kind.WELCOME)
        gateway.process.send_signal(signal.SIGTERM)
        client.hear(Kind.GOODBYE)
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait() == 1
        assert client.hear_all() == []


async def test_settings_read_again_under_load_lose_nothing(serve: Serve) -> None:
    settings: dict[str, object] = {"services": ["default"], "limits.ping_s": 20.0}
    gateway = serve(settings)
    readings = {
        "read again": {**settings, "limits.ping_s": 10.0, "log.level": "debug"},
        "settings unchanged": {**settings, "limits.ping_s": -1},
        "there is no setting": {**settings, "limits.pong_s": 1.0},
        "waits for a restart": {**settings, "name": "renamed"},
    }
    async with streaming(gateway.address, "default") as (stream,):
        for said, changed in readings.items():
            gateway.write_settings(changed)
            gateway.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(await_log, gateway, said)
            await stream.advance()
    assert stream.is_exact()
    assert (stream.connects, stream.breaks) == (1, 0)
    assert gateway.service()["restarts"] == 0


async def test_new_limits_hold_from_the_next_connection_on(serve: Serve) -> None:
    gateway = serve({"limits.subscriptions": 10})
    gateway.write_settings({"services": ["default"], "limits.subscriptions": 5})
    gateway.process.send_signal(signal.SIGHUP)
    await asyncio.to_thread(await_log, gateway, "read again")

    def refused() -> list[str]:
        wishes = [subscribe(b"a.%d" % number) for number in range(10)]
        with Stranger(gateway.port, CONNECT + b"".join(wishes)) as stranger:
            return stranger.hear_errors()

    assert await asyncio.to_thread(refused) == ["TooMany"] * 5
