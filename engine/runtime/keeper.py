"""The thread that tidies the input log: it merges the files that the pump is done with, and deletes what nobody needs any more.

Nothing of it is needed to go on: what fails is logged, and tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pyarrow as pa

from engine.runtime.log import LogFolder
from engine.runtime.room import Room
from engine.supervision.worker import ANY_NUMBER, Worker

_LOG = logging.getLogger(__name__)
_REST_S = 10.0
_EXPIRE_S = 60.0
_MOST_UNMERGED = 1_000     # while the pump is behind, merging waits until there are so many


class LogKeeper:
    """`position` is how far the pump is; `needed` the greatest retention of a stream (ms) and the time from which on items may be read
    again, or None while that is not known; `seen` is told how many files were merged."""

    def __init__(self, folder: LogFolder, room: Room, archive_files: int, position: Callable[[], int],
                 needed: Callable[[], tuple[int, int] | None], seen: Callable[[int], None]) -> None:
        self.worker = Worker("log-keeper", self._run, most=ANY_NUMBER)
        self._folder, self._room, self._archive_files = folder, room, archive_files
        self._position, self._needed, self._seen = position, needed, seen
        self._wake = threading.Event()
        self._closing = False
        self._expired = 0.0

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        self._closing = True
        self._wake.set()
        self.worker.join()

    def merge(self, least: int) -> int:
        """Merge what the pump is done with, if there are so many files; what cannot be merged stays as it is, for another time."""
        try:
            return self._folder.merge(self._position(), least, self._room.fits)
        except (OSError, pa.ArrowException):
            _LOG.warning("files of the input log could not be merged", exc_info=True)
            return 0

    def _run(self) -> None:
        while not self._closing:
            busy = self._wake.wait(_REST_S)
            self._wake.clear()
            if not self._closing:
                with self.worker.busy():
                    self._tidy_up(busy)

    def _tidy_up(self, busy: bool) -> None:
        self._seen(self.merge(self._least(busy)))
        needed = self._needed()
        if needed is not None and (time.monotonic() - self._expired > _EXPIRE_S or self._room.low):
            self._expired = time.monotonic()
            self._folder.expire(time.time() - needed[0] / 1000, needed[1])

    def _least(self, busy: bool) -> int:
        """How many files are worth merging: what is waited for comes first."""
        if not busy:
            return 2
        return _MOST_UNMERGED if self._folder.waiting(self._position()) else self._archive_files
