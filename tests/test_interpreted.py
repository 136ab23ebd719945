import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft

PROGRAM = """
import importlib, pkgutil, weft
for found in pkgutil.walk_packages(weft.__path__, "weft."):
    print(found.name, importlib.import_module(found.name).__file__)
"""
PXD_FOLDER = Path(weft.__file__).parent
INLINE_ONLY = {
    "weft.client.publish.gil_lock",
    "weft.client.subscriptions.context_check",
    "weft.wire.byteops",
    "weft.transports.loop.syscalls",
}


def loaded(pure: str) -> dict[str, str]:
    """The file of every weft module that a new process loads."""
    run = subprocess.run(  # noqa: S603  # our own program and interpreter
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "WEFT_PURE": pure},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split(maxsplit=1) for line in run.stdout.splitlines())


def declared() -> set[str]:
    """Every module that has a .pxd to be compiled by."""
    return {
        ".".join(["weft", *pxd.relative_to(PXD_FOLDER).with_suffix("").parts])
        for pxd in PXD_FOLDER.rglob("*.pxd")
    } - INLINE_ONLY


@pytest.mark.parametrize("pure", ["", "0"])
def test_modules_with_a_pxd_are_compiled(pure: str) -> None:
    assert {name for name, file in loaded(pure).items() if file.endswith(".so")} == declared()


def test_with_weft_pure_every_module_is_interpreted() -> None:
    assert all(file.endswith(".py") for file in loaded("1").values())
