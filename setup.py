"""Compiles every module that has a .pxd beside its .py; everything else is in pyproject.toml.

Any Cython warning is an error: a half-typed hot path must not be built in silence.
"""

import itertools
import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
C_FILES = Path("build/cython")
# Their .pxd holds inline bodies for the modules that cimport them; there is nothing to compile.
INLINE_ONLY = {
    "weft.client.publish.gil_lock",
    "weft.client.subscriptions.context_check",
    "weft.wire.byteops",
    "weft.transports.loop.syscalls",
}

# Modules that a message does not pass through: optimizing them fully would make the build a fifth
# longer and no message faster.
OFF_THE_MESSAGE_PATH = {
    "weft.broker.replies",
    "weft.broker.mesh_hooks",
    "weft.broker.control",
    "weft.broker.rate_limit",
    "weft.broker.system_events",
    "weft.broker.handshake",
    "weft.broker.reply_aliases",
    "weft.broker.journal.release_staged",
    "weft.wire.frame_senders",
    "weft.broker.service",
    "weft.broker.sweep",
    "weft.mesh.routing.forwarding_tree",
    "weft.gateway.front.front",
    "weft.gateway.front.listener",
    "weft.gateway.front.pending_connections",
    "weft.gateway.front.sniff",
}

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
            level = "-O1" if name in OFF_THE_MESSAGE_PATH else "-O2"
            extensions.append(Extension(name, [str(source)], extra_compile_args=[level, "-g0"]))
    return extensions


class Build(build_ext):
    """Compiles the extensions, and prints which of how many it is at."""

    def build_extensions(self) -> None:
        """Compile every extension that is older than its sources."""
        self._numbers = itertools.count(1)
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Compile one extension; several threads do this at once."""
        number = next(self._numbers)
        print(f"[{number}/{len(self.extensions)}] compiling {ext.name}", flush=True)
        super().build_extension(ext)


def remove_orphans() -> None:
    """Delete what was built from a source that is gone.

    An extension could still be imported, and a C file would look outdated at every build.
    """
    for extension in SOURCE.glob("weft/**/*.so"):
        if not extension.with_name(extension.name.split(".")[0] + ".pxd").exists():
            extension.unlink()
    for made in C_FILES.rglob("*.c"):
        if not made.relative_to(C_FILES).with_suffix(".pxd").exists():
            made.unlink()


def is_changed() -> bool:
    """Say if C files were made under other rules than these: Cython only looks at the sources."""
    rules = Path(__file__).stat().st_mtime
    return any(made.stat().st_mtime < rules for made in C_FILES.rglob("*.c"))


# `make` builds in place, part by part, and then only registers the folder.
IS_BUILT_ALREADY = bool(os.environ.get("WEFT_IS_BUILT"))

remove_orphans()

setup(
    cmdclass={"build_ext": Build},
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
