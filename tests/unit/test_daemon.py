"""The process that Spark forks its Python workers from."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from engine.spark.daemon import keep_archives


def test_archives_are_not_read_again_for_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("module_of_the_archive.py", "value = 1")
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches)
    monkeypatch.syspath_prepend(archive)
    keep_archives()
    assert importlib.import_module("module_of_the_archive").value == 1
    known = sys.path_importer_cache[str(archive)]
    archive.unlink()
    importlib.invalidate_caches()
    assert sys.path_importer_cache[str(archive)] is known
    assert not known.is_package("module_of_the_archive"), "a module that it does not know raises an error"
