"""Work on Spark as a command does it: a session, how far it is, and its errors in a sentence."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from weft.cli.output import streams
from weft.cli.output.progress import Bar
from weft.errors import BadOption, WeftError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_LOOK_S = 0.2
# What our own code said, where Spark has put a trace around it.
_OURS = re.compile(r"^(?:pyspark\.\S+: )?weft\.[\w.]+: (?P<text>.+)$", re.MULTILINE)


class JobFailed(WeftError):
    """Spark could not do the work."""


def session(title: str, master: str | None, statement: str | None = None) -> "SparkSession":
    """A session of Spark, quiet, on a master or on this machine.

    Raises:
        BadOption: there is no Java for it, nobody answers there, or Spark cannot parse the
            statement, which is known before the session is there.
    """
    from pyspark.errors import ParseException  # noqa: PLC0415  # slow to import

    import weft.spark  # noqa: PLC0415  # as above

    _hush_loggers()
    settings = {"spark.log.level": "ERROR"}
    chosen = {} if master is None else {"master": master}
    with Bar(title, None) as bar:
        bar.reached(0, "Spark starts")
        with _quiet(), _same_signals(), _safe_path():
            try:
                return weft.spark.session(
                    f"weft {title}", settings=settings, statement=statement, **chosen
                )
            except ParseException as error:
                raise BadOption(said_in(str(error))) from error


@contextmanager
def _safe_path() -> Iterator[None]:
    """Have no Python process that the JVM starts import from the working folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextmanager
def _same_signals() -> Iterator[None]:
    """Let ^C mean what it did before: Spark would cancel its jobs in the midst of a call."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _hush_loggers() -> None:
    """Let Spark not log the errors that it raises: they are told once, in a sentence."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  # slow to import

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _quiet() -> Iterator[None]:
    """Let what is started meanwhile say nothing on standard error, unless somebody looks for it.

    Spark's Java says much when it starts, and only its exceptions are worth reading.
    """
    if os.environ.get("WEFT_DEBUG"):
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def perform(
    spark: "SparkSession",
    title: str,
    work: Callable[[], T],
    *,
    cancel: Callable[[], object] | None = None,
    is_shown: bool = True,
) -> T:
    """Do what takes Spark a while, and show how far it is; ^C cancels it.

    Raises:
        JobFailed: Spark could not do it.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # slow to import

    # In a thread of its own: while Spark is waited for, ^C would break the line to it.
    outcome: Future[T] = Future()
    thread = threading.Thread(target=_settle, args=(spark, outcome, work), daemon=True)
    is_seen = is_shown and hasattr(spark, "_jsc")
    with Bar(title, 1.0) if is_seen else nullcontext() as bar:
        try:
            thread.start()
            while thread.is_alive():
                thread.join(_LOOK_S)
                if bar is not None and streams.is_terminal(sys.stderr):
                    bar.reached(*_reached(spark))
        except KeyboardInterrupt:
            (cancel or (lambda: _cancel_all(spark)))()
            if thread.ident is not None:
                thread.join()
            raise
    try:
        return outcome.result()
    except PySparkException as error:
        raise JobFailed(said_in(str(error))) from error


def _settle(spark: "SparkSession", outcome: "Future[T]", work: Callable[[], T]) -> None:
    try:
        _activate(spark)
        outcome.set_result(work())
    except BaseException as error:  # told to whoever waits
        outcome.set_exception(error)


def _activate(spark: "SparkSession") -> None:
    """Make a session the one of this thread: Spark looks there for the formats that it knows."""
    if hasattr(spark, "_jsparkSession"):
        of_java = spark._get_j_spark_session_class(spark._jvm)
        of_java.setActiveSession(spark._jsparkSession)


def _cancel_all(spark: "SparkSession") -> None:
    if hasattr(spark, "_jsc"):
        spark.sparkContext.cancelAllJobs()
    else:
        spark.interruptAll()


def said_in(text: str) -> str:
    """What an error of Spark says: our own words if there are some, else its first line."""
    from weft.pipeline.tables import without_codes  # noqa: PLC0415  # needs pyspark

    ours = _OURS.findall(text)
    return ours[-1].strip() if ours else without_codes(text)


def _reached(spark: "SparkSession") -> tuple[float, str]:
    """How much of what is under way is done, and in words."""
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    stages = [each for each in found if each is not None]
    done = sum(each.numCompletedTasks for each in stages)
    tasks = sum(each.numTasks for each in stages)
    return done / tasks if tasks else 0.0, f"{done:,} of {tasks:,} tasks"
