"""Which tests run beside each other, where several processes run them.

The tests of a file stay together, because they share its gateway. All that need Spark stay together
as well: a second Java would cost more than it could bring, and Spark gives up on a Python that does
not start within 10 s. What takes longest begins first: at the end one process would be busy with it
alone.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

OF_SPARK = (
    "tests/cli/commands/test_pipeline",
    "tests/cli/commands/test_sql",
    "tests/cli/options/test_spark",
    "tests/cli/output/test_spark",
    "tests/cli/spark/",
    "tests/examples/test_demo",
    "tests/pipeline/",
    "tests/spark/",
)
LONGEST = (
    "spark",
    "tests/simulation/test_seeds.py",
    "tests/faults/test_mesh.py",
    "tests/faults/test_journal.py",
    "tests/journeys/test_many_connections.py",
)


class Shares(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Hands out a file at a time, and everything of Spark as if it were one file."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(OF_SPARK) else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        for share in LONGEST:
            if share in self.workqueue:
                self.workqueue.move_to_end(share, last=False)
                break
        super()._assign_work_unit(node)
