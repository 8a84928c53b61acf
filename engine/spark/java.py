"""What the JVM of Spark 4.0 needs: a Java, 17 or 21, and an archive of the classes that it loads.

A machine often has several Javas, and the one on the PATH may be one that Spark does not run on (24 and later removed the security manager
that Hadoop asks for; 11 is too old). So every Java that can be found is asked for its version, and only a fitting one wins. Where there is
none and the process may install packages, Debian's is installed; else the error says what to install.

The archive (the JVM's class data sharing) is made once per installation: the JVM's start takes half the time with it and the warm-up two
thirds (docs/decisions.md, "Spark's start"). The JVM checks it against its class path and leaves it unused where it does not fit:
so a wrong one costs time, never answers.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from engine.spark.settings import SparkSettings

WANTED = (17, 21)
DEBIAN_PACKAGE = "openjdk-17-jre-headless"
HELP = f"""Spark needs Java 17 or 21, and none was found.
Install one, then start again:
  Debian, Ubuntu   apt-get install {DEBIAN_PACKAGE}
  Fedora, RHEL     dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
  without root     unpack a JDK 17 (Temurin, Zulu, ...) anywhere and set JAVA_HOME to its folder"""

FOLDERS = ("/usr/lib/jvm/*", "/usr/java/*", "/usr/local/java/*", "/opt/*", "/opt/java/*",
           "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
           "/usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home")
HOME_FOLDERS = (".sdkman/candidates/java/*", ".jdks/*", ".jenv/versions/*", "Library/Java/JavaVirtualMachines/*/Contents/Home")


class JavaNotFound(RuntimeError):
    """No Java 17 or 21 here; the message says what was found instead and what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: `home` has ``bin/java``; `major` is 17 for ``17.0.15``."""

    home: Path
    major: int
    version: str


def find_java(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Java:
    """The first fitting Java of JAVA_HOME, the PATH and the usual folders (17 before 21 among the folders). `root` stands before the
    absolute folders of the system, for tests. Raises JavaNotFound."""
    known = os.environ if environment is None else environment
    unfit: list[Java] = []
    for places in _places(known, root):
        javas = [java for place in places if (java := read_java(place)) is not None]
        fit = sorted((java for java in javas if java.major in WANTED), key=lambda java: (java.major, str(java.home)))
        if fit:
            return fit[0]
        unfit += javas
    raise JavaNotFound(HELP + _others(unfit))


def ensure_java(say: Callable[[str], None], environment: Mapping[str, str] | None = None) -> Java:
    """`find_java`, installing Debian's package first where there is none and this process may (root and apt-get)."""
    try:
        return find_java(environment)
    except JavaNotFound:
        if not _may_install():
            raise
    say(f"no Java 17 or 21 found: installing {DEBIAN_PACKAGE} with apt-get (about 200 MB)")
    try:
        _apt_install(say)
    except (OSError, subprocess.SubprocessError) as failure:
        raise JavaNotFound(f"{HELP}\n(apt-get was tried and failed: {failure})") from failure
    return find_java(environment)


def read_java(home: Path) -> Java | None:
    """The Java in the folder `home`, or None if there is none that tells its version."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    version = _version_in_release(home / "release") or _version_by_asking(home / "bin" / "java")
    major = major_version(version) if version else None
    return Java(home, major, version) if version and major else None


def major_version(version: str) -> int | None:
    """17 of ``17.0.15``, 8 of ``1.8.0_412``, 25 of ``25-ea``; None of what is no version."""
    numbers = re.match(r"(\d+)(?:\.(\d+))?", version)
    if numbers is None:
        return None
    first, second = int(numbers[1]), numbers[2]
    return int(second) if first == 1 and second else first


def _places(environment: Mapping[str, str], root: Path) -> Iterator[list[Path]]:
    """Where to look, in order; all of one entry are looked at together."""
    if java_home := environment.get("JAVA_HOME"):
        yield [Path(java_home)]
    folders = [Path(folder) for folder in environment.get("PATH", "").split(os.pathsep) if folder]
    yield [home for folder in folders if (home := _home_of(folder / "java"))]
    yield _distinct(path for pattern in FOLDERS for path in root.glob(pattern.lstrip("/")))
    if user_home := environment.get("HOME"):
        yield _distinct(path for pattern in HOME_FOLDERS for path in Path(user_home).glob(pattern))


def _home_of(program: Path) -> Path | None:
    """The installation that a ``java`` on the PATH belongs to, through links (/usr/bin/java -> ... -> HOME/bin/java)."""
    if not os.access(program, os.X_OK):
        return None
    home = Path(os.path.realpath(program)).parent.parent
    return home.parent if home.name == "jre" and (home.parent / "release").is_file() else home


def _distinct(paths: Iterator[Path]) -> list[Path]:
    """Each folder once, links followed (Debian has /usr/lib/jvm/java-1.17.0-openjdk-amd64 -> java-17-openjdk-amd64)."""
    return sorted({Path(os.path.realpath(path)) for path in paths})


def _version_in_release(release: Path) -> str | None:
    """JAVA_VERSION of the `release` file that a JDK or JRE carries: no process need be started for it."""
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = re.search(r'^JAVA_VERSION="?([^"\n]+)', text, re.MULTILINE)
    return line[1] if line else None


def _version_by_asking(program: Path) -> str | None:
    """What ``java -version`` says; None if it does not run (macOS has a /usr/bin/java that only advertises)."""
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    quoted = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return quoted[1] if quoted else None


def _others(unfit: list[Java]) -> str:
    if not unfit:
        return ""
    return "\nFound, but Spark 4.0 does not run on " + ", ".join(f"Java {java.version} in {java.home}" for java in unfit) + "."


def _may_install() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt_install(say: Callable[[str], None]) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "-y", "--no-install-recommends", DEBIAN_PACKAGE]):
        say("apt-get " + " ".join(step))
        subprocess.run(["apt-get", "-qq", *step], check=True, env=environment, timeout=900, stdin=subprocess.DEVNULL)


KEPT = 3     # archives of classes
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive_path(settings: SparkSettings, java: Java, entries: Mapping[str, str]) -> Path:
    """Where the archive for this Java, this Spark and this class path is or would be."""
    parts = [java.version, str(java.home), pyspark.__version__, pyspark.__file__, entries.get("spark.driver.extraClassPath", "")]
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return settings.cache.expanduser() / "classes" / f"{name}.jsa"


def use_archive(path: Path) -> str:
    """The JVM's options that use the archive; none where it has not been made."""
    return f'"-XX:SharedArchiveFile={path}" {_QUIET}' if path.is_file() else ""


def make_options(path: Path) -> str:
    """The JVM's options that write an archive when the JVM ends, to a name that `finish` makes the real one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return f'"-XX:ArchiveClassesAtExit={_unfinished(path)}" {_QUIET}'


def finish(path: Path) -> bool:
    """Put a written archive in its place and drop old ones; False where the JVM wrote none."""
    unfinished = _unfinished(path)
    if not unfinished.is_file():
        return False
    unfinished.replace(path)
    archives = sorted(path.parent.glob("*.jsa"), key=lambda archive: archive.stat().st_mtime, reverse=True)
    for old in archives[KEPT:]:
        old.unlink(missing_ok=True)
    return True


def _unfinished(path: Path) -> Path:
    return path.with_suffix(".part")
