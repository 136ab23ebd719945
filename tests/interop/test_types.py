"""The types of weft.js, as the compiler of TypeScript reads them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "src" / "weft" / "static"
SOURCE = Path(__file__).parent / "typescript"
# Where `make interop` installs it.
PLACE = ROOT / "build" / "interop" / "typescript"
COMPILER = PLACE / "node_modules" / "typescript" / "bin" / "tsc"
OPTIONS = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext")

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not COMPILER.is_file(),
    reason="make interop installs the compiler",
)


def test_a_program_may_send_what_can_be_sent_and_misspell_no_option(tmp_path: Path) -> None:
    shutil.copy(PAGES / "weft.d.ts", tmp_path)
    shutil.copy(SOURCE / "use.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    command = ["node", str(COMPILER), *OPTIONS, "use.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (0, "")
