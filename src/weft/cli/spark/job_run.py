"""Execution of Spark work in a command: session, progress, and errors as a sentence."""

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
# Text of our own errors within a stack trace of Spark.
_OURS = re.compile(r"^(?:pyspark\.\S+: )?weft\.[\w.]+: (?P<text>.+)$", re.MULTILINE)


class JobFailed(WeftError):
    """Spark failed to do the work."""


def session(title: str, master: str | None, statement: str | None = None) -> "SparkSession":
    """Return a session of Spark without its log output.

    Raises:
        BadOption: No suitable Java, no answer from the master, or Spark cannot parse the
            statement, which is checked before the session starts.
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
    """Keep Python processes of the JVM from importing from the working folder."""
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
    """Keep the handler of ^C: Spark's would cancel its jobs during a call."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _hush_loggers() -> None:
    """Disable Spark's logging of errors that it raises: they are printed once, as a sentence."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415  # slow to import

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence standard error for processes that the block starts, unless WEFT_DEBUG is set.

    Spark's JVM logs much when it starts, and only its exceptions matter.
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
    """Run Spark work with a progress bar; ^C cancels it.

    Raises:
        JobFailed: Spark failed to do it.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # slow to import

    # In a thread: ^C while waiting for Spark would break the connection to it.
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
    except BaseException as error:  # raised again in perform()
        outcome.set_exception(error)


def _activate(spark: "SparkSession") -> None:
    """Make a session the active one of this thread, where Spark looks up its formats."""
    if hasattr(spark, "_jsparkSession"):
        of_java = spark._get_j_spark_session_class(spark._jvm)
        of_java.setActiveSession(spark._jsparkSession)


def _cancel_all(spark: "SparkSession") -> None:
    if hasattr(spark, "_jsc"):
        spark.sparkContext.cancelAllJobs()
    else:
        spark.interruptAll()


def said_in(text: str) -> str:
    """Return the text of a Spark error: our own if there is one, else its first line."""
    from weft.pipeline.tables import without_codes  # noqa: PLC0415  # needs pyspark

    ours = _OURS.findall(text)
    return ours[-1].strip() if ours else without_codes(text)


def _reached(spark: "SparkSession") -> tuple[float, str]:
    """Return the finished share of the active tasks, and their numbers."""
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    stages = [each for each in found if each is not None]
    done = sum(each.numCompletedTasks for each in stages)
    tasks = sum(each.numTasks for each in stages)
    return done / tasks if tasks else 0.0, f"{done:,} of {tasks:,} tasks"
