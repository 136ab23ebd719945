"""redis-py: blocking, publishing by pipelines of a batch, listening on a thread.

Redis has no requests: a question is a message with another channel for the answer.
"""

import json
from typing import Any

import redis

from benchmarks.peers.clients.driving import (
    BATCH,
    SUBJECT,
    Figures,
    Heard,
    Task,
    blocking_flow,
    blocking_requests,
)


def run(task: Task) -> Figures:
    """Measure."""
    publisher = redis.Redis(port=task.port)
    subscriber = redis.Redis(port=task.port).pubsub(ignore_subscribe_messages=True)
    if task.case == "request":
        return _requests(publisher, subscriber, task)
    heard = Heard()

    def hear_fields(message: dict[str, Any]) -> None:
        heard.fields(json.loads(message["data"]))

    subscriber.subscribe(**{SUBJECT: hear_fields if task.is_typed else heard.message})
    listening = subscriber.run_in_thread(daemon=True)
    pipeline = publisher.pipeline(transaction=False)
    waiting = 0

    def publish(subject: str, body: bytes) -> None:
        nonlocal waiting
        pipeline.publish(subject, body)
        waiting += 1
        if waiting == BATCH:
            pipeline.execute()
            waiting = 0

    figures = blocking_flow(publish, heard, task)
    listening.stop()
    return figures


def _requests(publisher: Any, subscriber: Any, task: Task) -> Figures:
    answers = redis.Redis(port=task.port).pubsub(ignore_subscribe_messages=True)
    answers.subscribe("answer")
    answering = redis.Redis(port=task.port)
    subscriber.subscribe(question=lambda _: answering.publish("answer", b"pong"))
    answers.get_message(timeout=1)
    thread = subscriber.run_in_thread(daemon=True)

    def ask() -> None:
        publisher.publish("question", b"ping")
        while answers.get_message(timeout=1) is None:
            continue

    figures = blocking_requests(ask, task)
    thread.stop()
    return figures
