"""Weft started in a folder that holds modules of its names: no process may import those."""

import ast
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.gateway_process import WAIT_S, GatewayProcess, eventually

import weft
from weft.journal.segment.file_names import segments_of

SOURCE = Path(weft.__file__).parent
# Every place that starts a Python process, by module; extend it together with a `-P` there.
STARTED = {
    "cli/bench/worker.py": 1,
    "gateway/journal/history_requests.py": 1,
    "gateway/worker/supervisor.py": 1,
    "gateway/journal/lend.py": 1,
    "gateway/journal/maintenance.py": 1,
}
# Names the interpreter without starting it: for Spark's settings and for a line of text.
NAMED = {"cli/commands/serve.py": 1, "spark/cluster.py": 2}
# multiprocessing builds its own command line: it takes the setting from the environment.
POOLS = {"simulation/process_pool.py"}
MODULES = ("weft", "msgspec", "pyarrow", "uvloop", "multiprocessing", "encodings", "pyspark_weft")


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Path]:
    """A working folder whose modules leave a trace when they are imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in MODULES:
        trace = tmp_path / f"imported-{name}"
        (folder / f"{name}.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    yield folder
    assert not [each.name for each in tmp_path.glob("imported-*")]


def test_no_process_of_a_gateway_imports_from_its_working_folder(
    tmp_path: Path, hostile: Path
) -> None:
    data = tmp_path / "data"
    settings = {
        "data": str(data),
        "name": "london",
        "journal.patterns": [">"],
        "journal.segment_bytes": 20_000,
    }
    with GatewayProcess(tmp_path, settings, cwd=hostile) as gateway:
        with weft.Connection(gateway.address) as connection:
            for number in range(500):
                connection.publish("a", {"n": number}, acknowledge=number == 499)
            found = connection.subscribe("a", since=0)
            assert [next(found).get_int64("n") for _ in range(500)] == list(range(500))
        with urllib.request.urlopen(
            f"http://127.0.0.1:{gateway.port}/journal/default", timeout=WAIT_S
        ) as answer:
            assert answer.status == 200
        eventually(
            lambda: any(
                each.state == "sealed" for each in segments_of(data / "journal", "default")
            ),
            gateway.log_file.read_text,
        )


def test_the_partner_of_a_benchmark_imports_nothing_from_the_working_folder(
    tmp_path: Path, hostile: Path
) -> None:
    with GatewayProcess(tmp_path) as gateway:
        run(hostile, "bench", "--gateway", gateway.address, "--seconds", "0.1")


def test_simulations_import_nothing_from_the_working_folder(hostile: Path) -> None:
    run(hostile, "simulate", "--seeds", "2", "--jobs", "2")
    run(hostile, "simulate", "--seeds", "2", "--jobs", "2", "--channels")


def test_the_processes_of_spark_import_nothing_from_the_working_folder(
    tmp_path: Path, hostile: Path
) -> None:
    data = tmp_path / "data"
    with GatewayProcess(tmp_path, {"data": str(data), "journal.patterns": [">"]}) as gateway:
        with weft.Connection(gateway.address) as connection:
            connection.publish("a", {"n": 1}, acknowledge=True)
        journal = str(data / "journal")
        run(hostile, "pipeline", "run", "rates", "--path", journal, "--gateway", gateway.address)


def run(folder: Path, *arguments: str) -> None:
    command = (str(Path(sys.executable).with_name("weft")), *arguments)
    done = subprocess.run(  # noqa: S603  # our own command
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_all_places_that_start_python_keep_the_working_folder_out() -> None:
    started: dict[str, int] = {}
    pools: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if ast.unparse(node) == "sys.executable" and isinstance(node, ast.Attribute):
                started[name] = started.get(name, 0) + 1
            if isinstance(node, ast.Tuple | ast.List | ast.Call):
                items = node.args if isinstance(node, ast.Call) else node.elts
                check_order(name, [ast.unparse(each) for each in items])
            if isinstance(node, ast.ImportFrom | ast.Import) and any(
                each.startswith("multiprocessing") for each in imported(node)
            ):
                pools.add(name)
    assert started == STARTED | NAMED
    assert pools == POOLS


def check_order(name: str, items: list[str]) -> None:
    """Whatever begins with the interpreter goes on with `-P`."""
    if "sys.executable" in items and name not in NAMED:
        assert items[items.index("sys.executable") + 1] == "'-P'", f"{name}: {items}"


def imported(node: ast.ImportFrom | ast.Import) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [each.name for each in node.names]
