"""The virtual environment is kept while it works, and made again when it does not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "prepare.sh"


def prepare(venv: Path) -> str:
    command = [str(TOOL), sys.executable, str(venv)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    made = tmp_path / "checkout" / ".venv"
    made.parent.mkdir()
    assert prepare(made) == ""
    (made / ".built").touch()
    return made


def test_an_intact_environment_is_kept(venv: Path) -> None:
    before = (venv / ".python").stat().st_mtime_ns
    assert prepare(venv) == ""
    assert (venv / ".built").exists()
    assert (venv / ".python").stat().st_mtime_ns == before


def test_a_moved_environment_is_made_again(venv: Path) -> None:
    moved = venv.parent.with_name("elsewhere")
    venv.parent.rename(moved)
    assert "making" in prepare(moved / ".venv")
    assert not (moved / ".venv" / ".built").exists()


def test_an_environment_whose_python_is_gone_is_made_again(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    assert "making" in prepare(venv)
    assert (venv / "bin" / "python").exists()
    assert not (venv / ".built").exists()


def test_an_environment_without_pip_is_made_again(venv: Path) -> None:
    for package in venv.glob("lib/python3*/site-packages/pip"):
        shutil.rmtree(package)
    assert "making" in prepare(venv)
    assert not (venv / ".built").exists()
