import io
import os
import signal
import sys
import threading

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, raise_error, when

from weft.cli.spark import job_run
from weft.cli.spark.job_run import JobFailed, perform, said_in, session


class Terminal(io.StringIO):
    """A stream that says that a person is looking."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[CODE] It is wrong. SQLSTATE: 12345\n\tat java", "It is wrong."),
        (
            "[X] Job aborted\nTraceback\nweft.spark.columns.BadColumn: field 'a' is 'b'\n\nmore",
            "field 'a' is 'b'",
        ),
        ("Something\nelse", "Something"),
    ],
)
def test_an_error_of_spark_is_a_sentence(text: str, said: str) -> None:
    assert said_in(text) == said


def test_what_fails_is_told_in_its_own_words(spark: SparkSession) -> None:
    rows = spark.range(1).select(when(col("id") == 0, raise_error("the cat is out")))
    with pytest.raises(JobFailed, match="the cat is out"):
        perform(spark, "test", rows.collect)


def test_a_terminal_shows_how_far_spark_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(job_run, "_LOOK_S", 0.01)
    is_seen = threading.Event()
    real = Terminal.write

    def write(self: Terminal, text: str) -> int:
        if " tasks" in text:
            is_seen.set()
        return real(self, text)

    monkeypatch.setattr(Terminal, "write", write)
    assert perform(spark, "counting", lambda: is_seen.wait(30))
    assert "counting" in terminal.getvalue()


def test_a_session_starts_without_a_word(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    assert session("test", None) is not None
    os.write(2, b"and afterwards it is heard")
    assert capfd.readouterr().err == "and afterwards it is heard"
    assert spark.version


def test_an_interrupt_cancels_the_work(spark: SparkSession) -> None:
    is_cancelled = threading.Event()

    def wait() -> bool:
        signal.raise_signal(signal.SIGINT)
        return is_cancelled.wait(30)

    with pytest.raises(KeyboardInterrupt):
        perform(spark, "waiting", wait, cancel=is_cancelled.set)
    assert is_cancelled.is_set()


def test_an_interrupt_means_what_it_did_before_spark(spark: SparkSession) -> None:
    before = signal.getsignal(signal.SIGINT)
    session("test", None)
    assert signal.getsignal(signal.SIGINT) is before
    assert spark.version
