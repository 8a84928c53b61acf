"""Files that are there whole or not at all: staged, synced, renamed into place, their folder synced."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path, staged: Path, *, synced: bool = True) -> Iterator[BinaryIO]:
    """Write to `staged`; at the end it is `path`, on disk if it is `synced`. What fails leaves neither behind (OSError, or what the block
    raises)."""
    try:
        with staged.open("wb") as sink:
            yield sink
            sink.flush()
            if synced:
                os.fsync(sink.fileno())
        staged.replace(path)
    except BaseException:  # also where the process is asked to end
        remove(staged)
        raise
    if synced:
        sync(path.parent)


def sync(folder: Path) -> None:
    """The names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file, if that can be done; whether it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
