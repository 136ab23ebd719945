"""Compiles every module that has a .pxd beside its .py; everything else is in pyproject.toml.

Any Cython warning is an error: a half-typed hot path must not be built in silence.
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

SOURCE = Path("src")
C_FILES = Path("build/cython")
# Their .pxd holds inline bodies for the modules that cimport them; there is nothing to compile.
INLINE_ONLY = {"weft.client.guard", "weft.core.words", "weft.doors.kernel"}

Options.warning_errors = True

if sys.byteorder != "little":
    raise SystemExit(
        "weft: the compiled core reads the wire in place and needs a little-endian machine"
    )


def compiled_modules() -> list[Extension]:
    """One extension for every .py with a .pxd beside it."""
    extensions = []
    for pxd in sorted(SOURCE.glob("weft/**/*.pxd")):
        source = pxd.with_suffix(".py")
        if not source.exists():
            raise SystemExit(f"{pxd} has no {source.name} beside it")
        name = ".".join(source.relative_to(SOURCE).with_suffix("").parts)
        if name not in INLINE_ONLY:
            extensions.append(Extension(name, [str(source)], extra_compile_args=["-O2", "-g0"]))
    return extensions


def remove_orphans() -> None:
    """Delete extensions whose source is gone: they could still be imported."""
    for extension in SOURCE.glob("weft/**/*.so"):
        if not extension.with_name(extension.name.split(".")[0] + ".pxd").exists():
            extension.unlink()


def is_changed() -> bool:
    """Say if C files were made under other rules than these: Cython only looks at the sources."""
    rules = Path(__file__).stat().st_mtime
    return any(made.stat().st_mtime < rules for made in C_FILES.rglob("*.c"))


# `make` builds in place, part by part, and then only registers the folder.
IS_BUILT_ALREADY = bool(os.environ.get("WEFT_IS_BUILT"))

remove_orphans()

setup(
    ext_modules=cythonize(
        [] if IS_BUILT_ALREADY else compiled_modules(),
        build_dir=str(C_FILES),
        force=is_changed(),
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": 3,
            "annotation_typing": False,
            # An attribute of None is an AttributeError, not a crash.
            "nonecheck": True,
            "embedsignature": True,
            "embedsignature.format": "python",
        },
    ),
)
