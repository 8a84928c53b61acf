"""How much room the file system of the data folder has, and what is kept free so that what was acknowledged can be answered."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from engine.runtime.errors import EngineError

_SHARE = 8      # of a small file system no more than this part is kept free
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_SQLITE_NO_ROOM = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE))


class Room:
    """The file system of `folder`. Once less than the `reserve` (bytes) is free, nothing large is taken in any more."""

    def __init__(self, folder: Path, reserve: int) -> None:
        self._folder, self._reserve = folder, reserve

    @property
    def reserve(self) -> int:
        return min(self._reserve, shutil.disk_usage(self._folder)[0] // _SHARE)

    def free(self) -> int:
        """Bytes that this process may still write."""
        return shutil.disk_usage(self._folder)[2]

    @property
    def low(self) -> bool:
        """Whether the reserve has been touched."""
        return self.free() < self.reserve

    def fits(self, size: int) -> bool:
        """Whether `size` bytes can be written without touching the reserve."""
        return self.free() - size >= self.reserve

    def check(self) -> None:
        """Raise 507 where nothing may be taken in."""
        free, reserve = self.free(), self.reserve
        if free < reserve:
            raise disk_full(f"There are {free} bytes left on the disk of the data folder; the last {reserve} are kept to answer what was "
                            "taken before.")


def disk_full(detail: str) -> EngineError:
    """507: the log or the database cannot grow."""
    return EngineError("disk-full", 507, detail)


def is_full(failure: BaseException) -> bool:
    """Whether something could not be written because there is no room: the same may work later."""
    if isinstance(failure, sqlite3.OperationalError):
        return getattr(failure, "sqlite_errorcode", None) in _SQLITE_NO_ROOM
    if isinstance(failure, EngineError):
        return failure.slug == "disk-full"
    return isinstance(failure, OSError) and failure.errno in _FULL
