import os
import socket
import subprocess
import sys

import pytest

import weft.spark
from weft.errors import BadOption
from weft.spark.cluster import Needs, check_reached, chosen, needs_of, prepare

TOO_SMALL = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "1m",
}
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of what another session of Spark left, and nothing left for the next."""
    for name in list(os.environ):
        if name.startswith(("SPARK_", "PYSPARK_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", dict(os.environ))


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_what_is_given_goes_before_what_spark_was_told() -> None:
    os.environ["SPARK_REMOTE"] = "sc://far"
    assert chosen("local[2]") == "local[2]"


def test_without_a_master_it_is_the_one_that_spark_was_told_else_this_machine() -> None:
    assert chosen(None) == "local[*]"
    os.environ["PYSPARK_GATEWAY_PORT"] = "1"
    assert chosen(None) is None
    os.environ["SPARK_REMOTE"] = "sc://far:15002"
    assert chosen(None) == "sc://far:15002"


def test_only_this_machine_has_the_manager_for_local_checkpoints() -> None:
    masters = ("local[*]", "spark://far:7077", "spark://localhost:7077", "yarn", "sc://far", None)
    assert [MANAGER in needs_of(master).settings for master in masters] == [True, *[False] * 5]


@pytest.mark.parametrize(
    ("master", "is_here"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,far:7077", False),
        ("spark://far:7077", False),
        ("k8s://https://far:443", False),
    ],
)
def test_a_driver_is_bound_to_the_loopback_where_nobody_else_takes_part(
    master: str, is_here: bool
) -> None:
    assert ("SPARK_LOCAL_IP" in needs_of(master).environment) is is_here


def test_executors_take_the_python_of_the_driver_unless_told_otherwise() -> None:
    prepare(needs_of("spark://far:7077"))
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    os.environ["PYSPARK_PYTHON"] = "./environment/bin/python"
    prepare(needs_of("spark://far:7077"))
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"


@pytest.mark.parametrize("master", ["sc://far:15002", None])
def test_a_server_and_spark_submit_have_their_own_java_and_python(master: str | None) -> None:
    needs = needs_of(master)
    assert (needs.has_java, needs.environment) == (False, {})
    os.environ["JAVA_HOME"] = "/as/it/was"
    prepare(needs)
    assert os.environ["JAVA_HOME"] == "/as/it/was"


def test_a_connect_server_is_told_nothing_that_it_decides() -> None:
    assert needs_of("sc://far:15002") == Needs(has_java=False)


def test_a_master_that_does_not_answer_is_named(closed_port: int) -> None:
    address = f"spark://127.0.0.1:{closed_port}"
    with pytest.raises(BadOption, match=f"no Spark master answers at {address} .*refused"):
        weft.spark.session(master=address)


def test_one_of_several_masters_is_enough(closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reached(f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}")


def test_a_connect_server_that_does_not_answer_is_named_but_not_its_token(
    closed_port: int,
) -> None:
    with pytest.raises(BadOption) as raised:
        weft.spark.session(master=f"sc://127.0.0.1:{closed_port}/;token=secret;use_ssl=true")
    said = str(raised.value)
    assert said == f"no Spark Connect server answers at sc://127.0.0.1:{closed_port}"


def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BadOption, match="no Spark Connect server answers"):
            check_reached(f"sc://127.0.0.1:{port}", timeout_s=0.2)


@pytest.mark.parametrize(
    "master",
    ["spark://", "spark://far", "spark://far:x", "spark://far:7077,", "sc://", "sc://far:x"],
)
def test_an_address_that_cannot_be_one_is_told_with_the_form(master: str) -> None:
    with pytest.raises(BadOption, match=r"not of the form (spark|sc)://host:port"):
        weft.spark.session(master=master)


def test_without_the_packages_of_connect_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.client", None)
    with pytest.raises(BadOption, match=r"pip install \"weft-mesh\[spark\]\""):
        weft.spark.session(master="sc://far:15002")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("master='moon'", "JAVA_GATEWAY_EXITED"),
        (f"settings={TOO_SMALL}", "memory 1048576 must be at least"),
    ],
)
def test_what_spark_cannot_start_with_is_one_sentence(arguments: str, reason: str) -> None:
    # A process of its own: this one may have a session already, and would be given that.
    said = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", f"import weft.spark; weft.spark.session({arguments})"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    last = said.stderr.splitlines()[-1]
    assert last.startswith("weft.errors.BadOption: Spark does not start on "), said.stderr
    assert reason in last
    assert last.endswith("; its log says more")


def test_only_this_machine_has_as_many_partitions_as_cores() -> None:
    name = "spark.sql.shuffle.partitions"
    cores = max(len(os.sched_getaffinity(0)), 2)
    assert needs_of("local[*]").settings[name] == str(cores)
    assert all(name not in needs_of(master).settings for master in ("spark://far:7077", None))
