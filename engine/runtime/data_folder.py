"""The data folder: how much room its file system has and what is kept free, so that what was acknowledged can be answered; and files that
cannot be used, which are moved to a folder of their own, never deleted, and told until somebody takes them away."""

import fcntl
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from engine.runtime.errors import EngineError, disk_full

_LOG = logging.getLogger(__name__)
_SHARE = 8      # of a small file system no more than this part is kept free
_WHY = ".why"


def lock(path: Path) -> TextIO:
    """The data folder for this process alone, for as long as the file is open."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise EngineError("data-in-use", 503, f"Another process uses the data folder {path.parent}.") from None
    return file


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
        return self.free() < self.reserve

    def fits(self, size: int) -> bool:
        return self.free() - size >= self.reserve

    def check(self) -> None:
        """Raise 507 where nothing may be taken in."""
        free, reserve = self.free(), self.reserve
        if free < reserve:
            raise disk_full(f"There are {free} bytes left on the disk of the data folder; the last {reserve} are kept to answer what was "
                            "taken before.")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that does not work while the rest does. `kind` is ``file``, ``log``, ``graph``, ``rules``, ``query``,
    ``record`` (of the input log), ``clock``, ``disk``, or ``topic`` (which a stream cannot read)."""

    kind: str
    name: str
    reason: str


class SetAside:
    """The files in `folder`. One that could not even be moved stays where it is, and is told as long as the process lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unmoved: dict[str, Trouble] = {}

    def move(self, path: Path, reason: str) -> None:
        """Set a file (or folder) aside, with the name of its folder before its own."""
        target = self._free(f"{path.parent.name}-{path.name}")
        _LOG.error("%s cannot be used and is set aside as %s: %s", path, target, reason)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        except FileNotFoundError:
            return
        except OSError as error:
            _LOG.exception("%s could not be set aside", path)
            self._unmoved[str(path)] = Trouble("file", str(path), f"{reason}; it could not be moved away: {error}")
            return
        try:
            target.with_name(target.name + _WHY).write_text(f"{path}: {reason}", encoding="utf-8")
        except OSError:  # a full disk: the file is safe, and was told above
            _LOG.warning("the reason for %s could not be written", target, exc_info=True)

    def troubles(self) -> list[Trouble]:
        """All that lies in the folder, also from before; what an operator takes out of it is told no more."""
        try:
            names = sorted(path.name for path in self.folder.iterdir() if path.suffix != _WHY)
        except OSError:
            names = []
        return [Trouble("file", str(self.folder / name), self._reason(name)) for name in names] + list(self._unmoved.values())

    def _reason(self, name: str) -> str:
        try:
            return (self.folder / (name + _WHY)).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "set aside, for a reason that could not be kept"

    def _free(self, name: str) -> Path:
        target, number = self.folder / name, 1
        while target.exists():
            number += 1
            target = self.folder / f"{name}.{number}"
        return target
