"""paho-mqtt: blocking, callbacks on its network thread, quality of service 0.

MQTT 3.1.1 has no requests: a question is a message with another topic for the answer.
"""

import json
import threading
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from benchmarks.peers.clients.driving import (
    STALL_S,
    SUBJECT,
    Figures,
    Heard,
    Task,
    blocking_flow,
    blocking_requests,
)


def run(task: Task) -> Figures:
    """Measure."""
    heard = Heard()
    came = threading.Event()

    def hear(_client: Client, _data: object, message: Any) -> None:
        heard.message(message)

    def hear_fields(_client: Client, _data: object, message: Any) -> None:
        heard.fields(json.loads(message.payload))

    def answer(client: Client, _data: object, _message: Any) -> None:
        client.publish("answer", b"pong")

    def answered(_client: Client, _data: object, _message: Any) -> None:
        came.set()

    def ask() -> None:
        came.clear()
        publisher.publish("question", b"ping")
        if not came.wait(STALL_S):
            raise RuntimeError("no answer came")

    if task.case == "request":
        subscriber = _connected(task, "question", answer)
        publisher = _connected(task, "answer", answered)
    else:
        subscriber = _connected(task, SUBJECT, hear_fields if task.is_typed else hear)
        publisher = _connected(task, "nothing", hear)
    try:
        if task.case == "request":
            return blocking_requests(ask, task)
        return blocking_flow(publisher.publish, heard, task)
    finally:
        for client in (publisher, subscriber):
            client.disconnect()
            client.loop_stop()


def _connected(task: Task, topic: str, callback: Any) -> Client:
    client = Client(CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    is_ready = threading.Event()
    client.on_message = callback
    client.on_subscribe = lambda *_: is_ready.set()
    client.connect("127.0.0.1", task.port)
    client.loop_start()
    client.subscribe(topic)
    if not is_ready.wait(STALL_S):
        raise RuntimeError(f"{topic} was not subscribed to")
    return client
