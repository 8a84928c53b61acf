"""Scratch folders of Spark: a temporary one per session, removed with it, or by a later session if its process was killed."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import TextIO

PREFIX = "thalweg-spark-"
_LOCK = "in-use"


class Scratch:
    """The work folder of a session: `given` by the user and kept, or a temporary one that `remove` removes.

    A temporary one is this process's as long as its lock is held; the system drops the lock with the process.
    """

    def __init__(self, given: Path | None) -> None:
        self._lock: TextIO | None = None
        if given is not None:
            given.mkdir(parents=True, exist_ok=True)
            self.path = given.resolve()
            return
        remove_abandoned()
        # It gets its name only once it is locked: a folder of that name without a lock is nobody's.
        made = Path(tempfile.mkdtemp(prefix="thalweg-new-"))
        self._lock = (made / _LOCK).open("w", encoding="utf-8")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = made.rename(made.with_name(made.name.replace("thalweg-new-", PREFIX)))

    def remove(self) -> None:
        """Remove a temporary folder with what is in it."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.close()


def remove_abandoned() -> None:
    """Remove the folders whose processes have ended without doing so (kill -9, a crash)."""
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            with (folder / _LOCK).open("r+", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, another user's, or gone meanwhile
