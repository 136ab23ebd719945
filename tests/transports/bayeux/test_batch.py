import json

import pytest

from weft.transports.bayeux.batch import BayeuxBatch, array_of

pytestmark = pytest.mark.req("TUN-24")


def test_a_batch_is_answered_once_when_all_its_answers_are_there() -> None:
    sent: list[bytes] = []
    batch = BayeuxBatch([{"channel": "/a"}, {"channel": "/b"}], sent.append)
    batch.settle()
    batch.asked[1].answer = {"b": 2}
    batch.settle()
    assert sent == []
    batch.asked[0].answer = {"a": 1}
    batch.delivered = [b'{"m":1},{"m":2}']
    batch.settle()
    batch.settle()
    assert [json.loads(text) for text in sent] == [[{"m": 1}, {"m": 2}, {"a": 1}, {"b": 2}]]


def test_no_pieces_are_an_empty_array() -> None:
    assert array_of([]) == b"[]"
