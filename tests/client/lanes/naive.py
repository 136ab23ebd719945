"""A receiver that joins nothing: what every judge of lanes must find out."""

from weft.client.lanes.receive_stream import In, Run, Unheard


class Naive(In):
    """Takes whatever comes, as it comes."""

    def by_gateway(self, item: Run | Unheard) -> list[Run]:
        assert isinstance(item, list)
        return [item]

    def by_lane(self, run: Run | Unheard) -> list[Run]:
        if isinstance(run, Unheard):
            self.taken += run.count
            return []
        self.taken += len(run)
        return [run]

    def switched_by_lane(self, number: int) -> list[list[bytes]]:  # noqa: ARG002
        self.taken += 1
        return []

    def switched_by_gateway(self, number: int) -> list[list[bytes]]:  # noqa: ARG002
        return []

    def by_tail(self, item: Run | Unheard) -> list[Run]:
        return [item] if isinstance(item, list) else []
