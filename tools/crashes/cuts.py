"""Cuts the power of a gateway's disk again and again, and counts what it lost.

The disk is an ext4 filesystem in a file. A power cut is what ext4 itself offers to tests of crashes
(EXT4_IOC_SHUTDOWN without a flush of its log): from then on nothing more reaches the disk, not even
what the system had taken and not yet written. The file is copied as it is then, the gateway killed,
and the copy mounted, so that ext4 replays its log as after a boot. So a message counts only if it
was on the disk; whatever was acknowledged, before or after the cut, must be.

What this cannot show is a disk that says it has written what it has not, or that tears or reorders
single sectors: the file takes every write at once and whole.
"""

import asyncio
import fcntl
import os
import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.attacks.gateway_process import eventually
from tools.crashes.publisher import Publisher
from tools.crashes.tally import Tally, tally
from tools.crashes.victim import Victim

from weft.journal.segment.recovery import owned, recover

# As a file with holes: only what is written takes room.
DISK_BYTES = 1 << 30
LONGEST_S = 1.5
_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSH = struct.pack("I", 2)


class NotPossible(Exception):
    """There can be no such disk here."""


class Disk:
    """A disk whose power can be cut; `path` is where it is mounted.

    Raises:
        NotPossible: it cannot be made or mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "disk"
        self._file = folder / "disk.ext4"
        self._copy = folder / "copy.ext4"

    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            raise NotPossible("only root can mount a disk")
        self.path.mkdir()
        with self._file.open("wb") as file:
            file.truncate(DISK_BYTES)
        try:
            _run("mkfs.ext4", "-q", "-F", str(self._file))
            self._mount()
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise NotPossible(" ".join(said.split())) from error
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self.path.is_mount():
            eventually(self._is_unmounted, f"{self.path} is in use")

    def cut(self) -> None:
        """Let nothing more reach the disk but what is on its way, which may be seen or not."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, _WITHOUT_FLUSH)
        finally:
            os.close(fd)

    def keep(self) -> None:
        """Take a copy of what is on the disk, when nothing is on its way there any more."""
        _run("cp", "--sparse=always", str(self._file), str(self._copy))

    def boot(self) -> None:
        """Mount what was on the disk when the power was cut; nobody may use it any more."""
        eventually(self._is_unmounted, f"{self.path} is in use")
        self._copy.replace(self._file)
        self._mount()

    def _mount(self) -> None:
        # With a loop device that goes when it is unmounted.
        _run("mount", "-t", "ext4", "-o", "loop", str(self._file), str(self.path))

    def _is_unmounted(self) -> bool:
        try:
            _run("umount", str(self.path))
        except subprocess.CalledProcessError:
            return False
        return True


async def cut_often(
    folder: Path, cuts: int, seed: int, settings: dict[str, object], tell: Callable[[str], None]
) -> Tally:
    """Cut the power of a gateway's disk, tell of each cut; what its journal holds in the end.

    Raises:
        NotPossible: there can be no such disk here.
    """
    chance = random.Random(seed)  # noqa: S311  # to be repeated, not to be secret
    publisher = Publisher(random.Random(seed))  # noqa: S311  # likewise
    with Disk(folder) as disk, Victim(folder, disk.path / "data", settings) as victim:
        async with publisher.publishing(victim.address):
            for number in range(cuts):
                if not settings:
                    # Elsewhere all are small: what a large write follows is synced before it.
                    publisher.vary(chance)
                await publisher.advance()
                await asyncio.sleep(chance.uniform(0.0, LONGEST_S))
                await _cut(disk, victim, publisher)
                found = tally(victim.place, publisher)
                tell(
                    f"cut {number + 1:>3}: {found.acknowledged:>9,} acknowledged,"
                    f" {found.kept:>9,} in the journal, {len(found.lost):,} lost"
                )
                await asyncio.to_thread(victim.start)
            await publisher.advance()
        victim.end()
        return tally(victim.place, publisher)


async def _cut(disk: Disk, victim: Victim, publisher: Publisher) -> None:
    """Cut the power, see that the gateway notices, and recover what there is after a boot."""
    refused = publisher.refused
    # To a sync that is under way at the cut ext4 says yes and writes nothing: a plain program that
    # writes and syncs shows the same. With the power gone nobody would have heard of it.
    told = set(publisher.acknowledged)
    await asyncio.to_thread(disk.cut)
    # A sync that was under way has ended by then, well or not, and so has what it wrote.
    await publisher.until(lambda: publisher.refused > refused)
    await asyncio.to_thread(disk.keep)
    await asyncio.to_thread(victim.kill)
    publisher.acknowledged &= told
    await asyncio.to_thread(disk.boot)
    with owned(victim.place):
        recover(victim.place)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
