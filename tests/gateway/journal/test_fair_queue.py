from weft.gateway.journal.fair_queue import FairQueue


def taken(queue: FairQueue[str]) -> list[str | None]:
    found: list[str | None] = []
    while queue:
        found.append(queue.take())
    assert queue.take() is None
    return found


def test_holders_take_turns_and_so_do_their_peers() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "a3"):
        queue.add("key a", 1, item)
    queue.add("key a", 2, "a4")
    queue.add("key b", 3, "b1")
    queue.add("key b", 3, "b2")
    assert len(queue) == 6
    assert taken(queue) == ["a1", "b1", "a4", "b2", "a2", "a3"]
    assert len(queue) == 0


def test_holders_that_may_have_nothing_are_passed_over() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("key a", 1, "a1")
    queue.add("key b", 2, "b1")
    assert queue.take(lambda holder: holder == "key b") == "b1"
    assert queue.take(lambda holder: holder == "key b") is None
    assert taken(queue) == ["a1"]


def test_who_comes_again_waits_behind_those_who_are_there() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("key a", 1, "a1")
    queue.add("key b", 2, "b1")
    assert queue.take() == "a1"
    queue.add("key a", 1, "a2")
    assert taken(queue) == ["b1", "a2"]
