"""Three gateways as people run them, each with a journal of the mesh, and what jobs say of it."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.gateway.meshes import wanted
from tests.journeys.running import WAIT_S, running
from tests.pipeline.desk import Said, numbered, read_journals, rows_of, write_journals

import weft
from weft.broker.journal.batcher import ARRIVED
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.file_names import FOLDER
from weft.pipeline.job import Job
from weft.pipeline.jobs import audit, matrix
from weft.wire.frames import parse

NODES = ("london", "paris", "rome")
COUNT = 50
SERVICES = 'services = ["weather"]'


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The data of three gateways that were a mesh, with subscribers and publishers at each."""
    folders = {node: tmp_path_factory.mktemp(node) for node in NODES}
    with ExitStack() as stack:
        addresses: dict[str, str] = {}
        for node, folder in folders.items():
            joined = [option for other in addresses.values() for option in ("--join", other)]
            kept = ("--data", str(folder / "data"), "--journal", "--journal-scope", "mesh")
            options = ("--name", node, *kept, *joined)
            made = stack.enter_context(running(folder, SERVICES, options=options))
            addresses[node] = made.address
        asyncio.run(talk(addresses))
    return {node: folder / "data" for node, folder in folders.items()}


async def talk(addresses: dict[str, str]) -> None:
    """Publish at every gateway until everybody everywhere has heard it all."""
    async with asyncio.timeout(2 * WAIT_S), AsyncExitStack() as stack:
        clients = {
            node: await stack.enter_async_context(weft.connect(address, service="weather"))
            for node, address in addresses.items()
        }
        heard = [client.subscribe("readings.>") for client in clients.values()]
        for node, client in clients.items():
            await client.flush()
            await wanted(client, "readings.x", *(other for other in NODES if other != node))
        for number in range(COUNT):
            for node, client in clients.items():
                await client.publish(f"readings.{node}", b"%04d" % number)
        for subscription in heard:
            for _ in range(COUNT * len(NODES)):
                await subscription.next(WAIT_S)


def table(spark: SparkSession, data: dict[str, Path], job: Job) -> DataFrame:
    """The journals of all gateways."""
    found = [read_journals(spark, each, job, {}, is_stream=False) for each in data.values()]
    return reduce(DataFrame.unionByName, found)


def said_in(data: dict[str, Path]) -> Iterator[Said]:
    """The same journals, message by message."""
    for node, folder in data.items():
        for each in history(folder / FOLDER, "weather", node):
            assert isinstance(each, JournalRecord)
            frame = parse(each.frame)
            yield Said(
                frame.sequence,
                subject=frame.subject.decode(),
                publisher=frame.publisher,
                origin=frame.origin,
                node=node,
                payload=frame.body,
                has_arrived=bool(frame.flags & ARRIVED),
            )


@pytest.mark.req("SPK-4")
def test_the_matrix_of_a_real_mesh_shows_what_went_between_its_gateways(
    spark: SparkSession, data: dict[str, Path]
) -> None:
    assert rows_of(matrix.matrix(table(spark, data, matrix.JOB))) == [
        ("weather", one, other, COUNT, 4 * COUNT) for one in NODES for other in NODES
    ]


@pytest.mark.req("SPK-4")
def test_the_audit_of_a_real_mesh_finds_no_fault(
    spark: SparkSession, data: dict[str, Path]
) -> None:
    assert rows_of(audit.audit(table(spark, data, audit.JOB))) == []


@pytest.mark.req("SPK-4")
def test_the_audit_finds_what_is_taken_out_of_the_journals_of_a_real_mesh(
    spark: SparkSession, data: dict[str, Path], tmp_path: Path
) -> None:
    said = list(said_in(data))
    arrived = [each for each in said if each.has_arrived and each.node == "paris"]
    taken = [each for each in arrived if each.subject == "readings.london"][COUNT // 2]
    said.remove(taken)
    write_journals(tmp_path, numbered(said))
    found = rows_of(audit.audit(read_journals(spark, tmp_path, audit.JOB, {}, is_stream=False)))
    number = taken.sequence
    assert found == [
        ("lost", "weather", "paris", taken.origin, "readings.london", number, number, 1)
    ]
