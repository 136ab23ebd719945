"""What all tests rely on: a core built from its present sources, and properties without timing."""

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from hypothesis import settings
from tests.sharing import Shares
from xdist.remote import Producer

from weft import _pure
from weft.gateway.config.settings import Tls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A deadline would assert a time. Interpreted, the same properties get fewer examples: there they
# look for a line that behaves otherwise, and the compiled run has already looked far.
settings.register_profile("weft", deadline=None, max_examples=30 if _pure.IS_ASKED_FOR else 100)
settings.load_profile("weft")

SOURCE = Path(_pure.__file__).parent
INLINE_ONLY = {"byteops", "context_check", "gil_lock", "syscalls"}


def faults_of_build() -> list[str]:
    """The modules that are not compiled as they now are: not built, out of date, or gone."""
    extensions = {_name(path): path for path in SOURCE.rglob("*.so")}
    pxds = [path for path in SOURCE.rglob("*.pxd") if path.stem not in INLINE_ONLY]
    sources = {_name(path): path for path in pxds}
    faults = [f"{name} has no source" for name in extensions.keys() - sources.keys()]
    faults += [f"{name} is not built" for name in sources.keys() - extensions.keys()]
    for name in extensions.keys() & sources.keys():
        built = extensions[name].stat().st_mtime
        source = sources[name]
        if built < max(source.stat().st_mtime, source.with_suffix(".py").stat().st_mtime):
            faults.append(f"{name} was built before its last edit")
    return sorted(faults)


def _name(path: Path) -> str:
    """What a module is called, with its package: two may have the same last name."""
    return ".".join([*path.relative_to(SOURCE).parts[:-1], path.name.split(".")[0]])


def pytest_configure() -> None:
    faults = [] if _pure.IS_ASKED_FOR else faults_of_build()
    if faults:
        raise pytest.UsageError(f"{', '.join(faults)}; run 'touch setup.py' and 'make build'")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Shares:
    return Shares(config, log)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two certificates for localhost, each with its authority: first and second."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("first", "second"):
        authority = trustme.CA()
        issued = authority.issue_cert("localhost", "127.0.0.1")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        for part in (*issued.cert_chain_pems, authority.cert_pem):
            part.write_to_path(folder / f"{name}.pem", append=True)
    return folder


@pytest.fixture
def tls(certificates: Path) -> Tls:
    """A certificate for localhost."""
    return Tls(cert=str(certificates / "first.pem"), key=str(certificates / "first.key"))


@pytest.fixture
def other_tls(certificates: Path) -> Tls:
    """Another one."""
    return Tls(cert=str(certificates / "second.pem"), key=str(certificates / "second.key"))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One session on two threads of this machine, for all tests; with what starts fastest."""
    import weft.spark  # noqa: PLC0415  # slow, and few tests need it

    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        # What a Python has to connect; on a machine that is busy with other things 15 s may not do.
        "spark.python.authenticate.socketTimeout": "120s",
        # To compile a plan, or to think it over, takes longer than a few rows do.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    before = dict(os.environ)
    made = weft.spark.session("tests", master="local[2]", settings=settings)
    yield made
    made.stop()
    os.environ.clear()
    os.environ.update(before)


# Long enough for anything that works, so that what hangs fails and does not stop the run.
TEST_LIMIT_S = 30


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with asyncio.timeout(TEST_LIMIT_S):
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True
