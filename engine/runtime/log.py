"""The input log on disk: Parquet files written by group commit, named by the positions of their first and last record.

A file that cannot be read is set aside, and its records are recorded as lost in a file beside the log, so that every replay agrees: the
pump goes on over such a hole, and over no other."""

import errno
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.files import remove, whole_file
from engine.runtime.data_folder import SetAside
from engine.runtime.rows import ROWS, Kind, in_order
from engine.supervision import FatalError
from engine.timeline import MAX, MIN

_LOG = logging.getLogger(__name__)
Found = TypeVar("Found")
_FILE = re.compile(r"(\d{16})-(\d{16})\.parquet")
_EVER = 1 << 62
_MERGED_BYTES = 64 << 20    # of files that are merged into one: so much more room is needed meanwhile
_SIDE_BY_SIDE = 10_000      # rows from which on the columns of a file are read side by side
_REPEATED = ["stream", "g", "p"]    # in a fresh file a dictionary of other columns takes as long as all else, for a quarter of the bytes
# The system's state, not the file's: nothing is known to be lost.
_PASSING = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN))


@dataclass(frozen=True, slots=True, order=True)
class Hole:
    """The records at positions `first` to `last` are lost."""

    first: int
    last: int
    reason: str


class Holes:
    """The holes of a log, ascending."""

    def __init__(self, path: Path, staging: Path) -> None:
        self._path, self._staged = path, staging / path.name
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = map(json.loads, lines)
        self._holes = tuple(Hole(first, last, reason) for first, last, reason in found)

    def __iter__(self) -> Iterator[Hole]:
        return iter(self._holes)

    def add(self, first: int, last: int, reason: str) -> None:
        """Record that positions `first` to `last` are lost, as far as that is not recorded already: on disk when this returns."""
        fresh = [Hole(begin, end, reason) for begin, end in without(first, last, self._holes)]
        if not fresh:
            return
        for hole in fresh:
            _LOG.error("the records %d to %d of the input log are lost, though they were acknowledged: %s", hole.first, hole.last, reason)
        holes = tuple(sorted([*self._holes, *fresh]))
        with whole_file(self._path, self._staged) as sink:
            sink.write("".join(f"{json.dumps([hole.first, hole.last, hole.reason])}\n" for hole in holes).encode())
        self._holes = holes

    def after(self, position: int) -> int:
        """The position of the record that follows `position`."""
        following = position + 1
        for hole in self._holes:
            if hole.first <= following <= hole.last:
                following = hole.last + 1
        return following


def without(begin: int, end: int, parts: Iterable["Hole | LogFile"]) -> list[tuple[int, int]]:
    """What is left of a range of positions (both ends are in it) without those of `parts`."""
    found = []
    for part in sorted(parts, key=lambda part: part.first):
        if part.last < begin or part.first > end:
            continue
        if part.first > begin:
            found.append((begin, part.first - 1))
        begin = part.last + 1
    return [*found, (begin, end)] if begin <= end else found


@dataclass(frozen=True, slots=True, order=True)
class LogFile:
    """A file with the records of positions `first` to `last`."""

    first: int
    last: int
    path: Path

    def read(self) -> pa.Table:
        with pq.ParquetFile(self.path) as file:     # half the time of a data set, of a small file
            if file.schema_arrow.equals(ROWS):
                return file.read(use_threads=file.metadata.num_rows > _SIDE_BY_SIDE)
        return pq.read_table(self.path, schema=ROWS, memory_map=False)


class LogUnsureError(FatalError):
    """A file of the log is in place, and may be read already, but is not known to last: its positions must not be given again."""


class LogFolder:
    """The files of the log: fresh ones in `folder`, those that the pump is done with merged in `archive`."""

    def __init__(self, folder: Path, archive: Path, aside: SetAside | None = None) -> None:
        self.folder, self.archive_folder = folder, archive
        self.aside = aside or SetAside(folder.parent / "set-aside")
        self._expired = archive / "expired"
        self._staging = folder.parent / "staging"
        for path in (folder, archive, self._staging):
            path.mkdir(parents=True, exist_ok=True)
        for left in self._staging.iterdir():
            if not remove(left):
                self.aside.move(left, "a half-written file that cannot be removed")
        try:
            self.holes = Holes(archive / "holes", self._staging)
        except ValueError as error:
            self.aside.move(archive / "holes", f"not readable: {error}")
            self.holes = Holes(archive / "holes", self._staging)

    def files(self) -> list[LogFile]:
        """All files, by position; a merged file may be there together with some that it was made of."""
        fresh = [*_files(self.folder)]     # before the archive: a file that is merged meanwhile is found in one of them
        return sorted([*_files(self.archive_folder), *fresh])

    def recover(self, after: int) -> Iterator[pa.Table]:
        """`read` for a start: records of which there is no file are recorded as lost."""
        for table in self.read(after):
            first = table["position"][0].as_py()
            if first > self.holes.after(after):
                there = self.files()    # once more: files are merged meanwhile
                for begin, end in without(after + 1, first - 1, there):
                    self.holes.add(begin, end, "there is no file with them")
            yield table
            after = table["position"][-1].as_py()

    def read(self, after: int, until: int = _EVER) -> Iterator[pa.Table]:
        """Rows of positions > `after` and <= `until`, in order, file by file."""
        return self._tables(after, until, lambda file: True)

    def some(self, after: int, most_rows: int) -> list[pa.Table]:
        """The fresh files with positions > `after`, in order, until there are `most_rows`: what came since a reader looked."""
        found, rows = list[pa.Table](), 0
        for file in self.waiting(after):
            if rows >= most_rows:
                break
            if (table := self._usable(file, file.read)) is not None:
                found.append(table)
                rows += table.num_rows
        return found

    def _usable(self, file: LogFile, read: Callable[[], Found]) -> Found | None:
        """What `read` gives of a file; None where the file cannot be read, which is then set aside. FileNotFoundError where it has gone."""
        try:
            return read()
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno in _PASSING:
                raise
            others = (other for other in self.files() if other.path != file.path)
            for first, last in without(file.first, file.last, others):
                self.holes.add(first, last, f"the file {file.path} cannot be read ({error})")
            self.aside.move(file.path, f"the log file cannot be read: {error}")
            return None

    def waiting(self, after: int) -> list[LogFile]:
        return sorted(file for file in _files(self.folder) if file.last > after)

    def sizes(self, until: int) -> list[int]:
        """The bytes of the fresh files that have records of positions <= `until` only."""
        found = []
        for file in _files(self.folder):
            with suppress(FileNotFoundError):   # others merge, too
                if file.last <= until:
                    found.append(file.path.stat().st_size)
        return found

    def history(self, needed: Mapping[str, int], until: int) -> Iterator[pa.Table]:
        """Items of positions <= `until` and of times >= `needed[stream]`, in order; files without any are not read."""
        if not needed:
            return
        oldest = min(needed.values())
        for table in self._tables(0, until, lambda file: newest_time(file.path) >= oldest):
            events = table.filter(pc.equal(table["record"], int(Kind.EVENT)))
            if events.num_rows:
                yield events

    def _tables(self, after: int, until: int, wanted: Callable[[LogFile], bool]) -> Iterator[pa.Table]:
        """Rows of the wanted files. Another thread may merge or delete files meanwhile: then the folder is listed again."""
        files = self.files()
        while files:
            file = files.pop(0)
            if file.last <= after or file.first > until:
                continue
            try:
                table = self._usable(file, lambda: in_order(file.read()) if wanted(file) else ROWS.empty_table())
            except FileNotFoundError:
                files = self.files()
                continue
            if table is None:
                continue
            if table.num_rows:
                inside = pc.and_(pc.greater(table["position"], after), pc.less_equal(table["position"], until))
                yield table.filter(inside)
            after = min(file.last, until)

    def write(self, table: pa.Table) -> LogFile:
        """Write rows, in order, to a new file of the log: on disk when this returns. LogUnsureError where that cannot be told."""
        try:
            return self._write(table, self.folder, "none")
        except OSError as error:
            path = self.folder / _name(table)
            if path.exists():
                raise LogUnsureError(f"the log file {path} is there, but perhaps not after a power cut: {error}") from error
            raise

    def merge(self, position: int, least: int, fits: Callable[[int], bool] = lambda size: True) -> int:
        """Merge the files up to `position` into the archive, if there are at least `least` of them; how many. OSError where there is no
        room, which `fits` tells for a number of bytes: nothing is lost then."""
        done = [file for file in sorted(_files(self.folder)) if file.last <= position]
        if len(done) < max(1, least):
            return 0
        for part, size in _parts(done, _MERGED_BYTES):
            if not fits(size):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            tables = [table for file in part if (table := self._usable(file, file.read)) is not None]
            if tables:
                self._write(in_order(pa.concat_tables(tables)), self.archive_folder, "zstd")
            for file in part:
                file.path.unlink(missing_ok=True)
        return len(done)

    def expire(self, before_mtime: float, oldest_ms: int) -> int:
        """Delete archived files last changed before `before_mtime` (s since the epoch) and without items from `oldest_ms` on."""
        old = [(file, newest) for file in _files(self.archive_folder) if file.path.stat().st_mtime < before_mtime
               and (newest := self._usable(file, lambda: newest_time(file.path))) is not None and newest < oldest_ms]
        if old:     # before the files go, it is noted up to where they may be missed
            before = self.expired() if self._expired.exists() else (MIN, 0)
            newest_ms, last = max(newest for _, newest in old), max(file.last for file, _ in old)
            with whole_file(self._expired, self._staging / self._expired.name) as sink:
                sink.write(f"{max(newest_ms, before[0])} {max(last, before[1])}".encode())
        for file, _ in old:
            file.path.unlink(missing_ok=True)
        return len(old)

    def expired(self) -> tuple[int, int]:
        """The greatest time of an item that was deleted, and the last position: everything later in either is there."""
        try:
            newest, last = self._expired.read_text().split()
        except (FileNotFoundError, ValueError):     # not there, or torn
            first = min((file.first for file in self.files()), default=1)
            return (MIN, 0) if first == 1 else (MAX, first - 1)
        return int(newest), int(last)

    def _write(self, table: pa.Table, folder: Path, compression: str) -> LogFile:
        name = _name(table)
        with whole_file(folder / name, self._staging / f"{folder.name}-{name}") as sink:
            pq.write_table(table, sink, compression=compression, write_statistics=["t"], store_schema=False,
                           use_dictionary=True if compression == "zstd" else _REPEATED)
        return LogFile(table["position"][0].as_py(), table["position"][-1].as_py(), folder / name)


def _name(table: pa.Table) -> str:
    return f"{table['position'][0].as_py():016d}-{table['position'][-1].as_py():016d}.parquet"


def newest_time(path: Path) -> int:
    """The greatest time of an item in a file, from its statistics."""
    metadata = pq.read_metadata(path)
    column = metadata.schema.to_arrow_schema().get_field_index("t")
    groups = [metadata.row_group(i).column(column).statistics for i in range(metadata.num_row_groups)]
    return max((int(group.max) for group in groups if group is not None and group.has_min_max), default=MIN)


def _files(folder: Path) -> Iterator[LogFile]:
    for name in os.listdir(folder):
        match = _FILE.fullmatch(name)
        if match is not None:
            yield LogFile(int(match[1]), int(match[2]), folder / name)


def _parts(files: list[LogFile], most_bytes: int) -> Iterator[tuple[list[LogFile], int]]:
    """Files in their order, in parts of about `most_bytes`, and how many bytes each part has."""
    part: list[LogFile] = []
    size = 0
    for file in files:
        part.append(file)
        size += file.path.stat().st_size
        if size >= most_bytes:
            yield part, size
            part, size = [], 0
    if part:
        yield part, size
