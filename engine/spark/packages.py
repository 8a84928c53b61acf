"""What thalweg requires, as an archive for executors whose machines have Python and Spark alone (a standalone cluster).

The packages are copied from the environment of this process, so they are those that the driver has. They fit a Python of the same minor
version on the same operating system and kind of processor.
"""

import platform
import re
import sys
import tarfile
from importlib.metadata import Distribution, distribution, requires
from pathlib import Path

from engine.files import whole_file

SUFFIX = ".tar.gz"      # Spark unpacks what has such a name
_OF_SPARK = frozenset({"pyspark", "py4j", "graphframes-py", "nose"})    # executors have Spark's own Python, and use no GraphFrames
_LEFT_OUT = frozenset({"tests", "include"})     # folders; a fifth of the bytes


class NotPacked(ValueError):
    """A package has no list of its files, as one that is installed as editable or by the system."""


def fits() -> str:
    """The Python and machine that packages of this process fit."""
    return f"Python {sys.version_info.major}.{sys.version_info.minor} on {platform.system()} {platform.machine()}"


def pack_packages(target: Path) -> list[str]:
    """Write into the archive `target` (tar.gz) what thalweg requires, importable from its root; gives back the names and versions. Raises
    OSError, NotPacked, or PackageNotFoundError where something is not installed. What fails leaves what was there."""
    names = [re.split(r"[^\w.-]", text)[0] for text in requires("thalweg") or () if "extra ==" not in text]
    found = [distribution(name) for name in names if name not in _OF_SPARK]
    with (whole_file(target, target.with_name(f"{target.name}.part")) as sink,
          tarfile.open(fileobj=sink, mode="w:gz", compresslevel=6, dereference=True) as archive):
        for one in found:
            _pack(one, archive)
    return [f"{one.name} {one.version}" for one in found]


def _pack(package: Distribution, archive: tarfile.TarFile) -> None:
    paths = [path for path in package.files or () if ".." not in path.parts and _LEFT_OUT.isdisjoint(path.parts)
             and path.suffix not in (".pyc", ".pth")]
    if all(path.parts[0].endswith(".dist-info") for path in paths):
        raise NotPacked(f"{package.name} {package.version} has no list of its files here: use an environment that pip has filled")
    for path in paths:
        archive.add(str(package.locate_file(path)), str(path), recursive=False)
