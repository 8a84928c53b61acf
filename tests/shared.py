"""Where the published test data is: the folder ``../shared/data`` beside this repository, or the one that THALWEG_SHARED names.

Without it the tests that need it are skipped, saying so; on a CI machine (CI is set) they fail, for there it must be.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("THALWEG_SHARED") or Path(__file__).resolve().parents[1] / "../shared/data").resolve()


def shared(*parts: str) -> Path:
    """The file or folder ``parts`` of the published data; skips the calling test (fails it under CI) where it is absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        reason = f"published test data not found: {path} (set THALWEG_SHARED to the folder that holds it)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def shared_files(pattern: str, *folder: str) -> list[Path]:
    """The files under a folder of the data, sorted, for ``parametrize``: empty where the data is absent, so pair it with a test
    that calls `shared` on the folder and so says why nothing ran."""
    return sorted(path for path in DATA.joinpath(*folder).glob(pattern) if path.is_file())
