from weft.broker.delivery.chunk import FrameChunk
from weft.broker.delivery.memory_budget import BACKLOG_FLOOR_BYTES, Budget


def test_a_piece_is_charged_while_somebody_holds_it() -> None:
    budget = Budget(1000)
    piece = FrameChunk(b"x" * 100)
    budget.hold(piece)
    budget.hold(piece)
    assert budget.used_bytes == 100
    budget.release(piece)
    assert budget.used_bytes == 100
    budget.release(piece)
    assert budget.used_bytes == 0


def test_a_backlog_may_take_what_is_left_and_never_less_than_the_floor() -> None:
    budget = Budget(4 << 20)
    assert budget.allowance() == 4 << 20
    budget.charge(1 << 20)
    assert budget.allowance() == 3 << 20
    budget.charge(16 << 20)
    assert budget.allowance() == BACKLOG_FLOOR_BYTES


def test_relief_is_noted_in_the_budget_of_the_service_too() -> None:
    service = Budget(1000)
    links = Budget(1000, service)
    links.ease()
    assert (links.is_eased, service.is_eased) == (True, True)
    assert service.used_bytes == 0
