"""A real ``thalweg serve`` process, for the tests that kill it and for the benchmarks.

It listens on a free loopback port. Only processes that were started here are ended, each by its own id.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 180.0
ASKED_S = 0.05
"""Between two requests that ask for one thing: each costs the server, which has something else to do, some milliseconds."""
_LISTENS = re.compile(r"listens on (http://\S+)")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """One server on one data folder; may be started again after it ended. `base` is its address, another after each start."""

    def __init__(self, data: Path, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        self.data, self.arguments = data, list(arguments)
        self.base = ""
        self.starts = 0
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ServerProcess:
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """What the process of the last start wrote."""
        return self.data.with_name(f"{self.data.name}-{self.starts}.log")

    def start(self) -> None:
        """Start the process and wait until it listens (the engine starts behind)."""
        self.starts += 1
        self.data.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "server", "serve", "--port", "0", "--data", str(self.data), *self.arguments]
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=out,
                                             stderr=subprocess.STDOUT, start_new_session=True)
        self._wait(lambda: _LISTENS.search(self.log.read_text(errors="replace")), "it does not listen")
        self.base = _LISTENS.findall(self.log.read_text(errors="replace"))[0]

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until ``/health/ready`` answers 200."""
        self._wait(lambda: ready(self.base), "it does not become ready", seconds)

    def kill(self) -> None:
        """SIGKILL to the server; returns when it and the processes that it had started are gone."""
        family = self.family()
        os.kill(self.pid, signal.SIGKILL)
        self._reap(10)
        _await_end(family[1:])

    def stop(self, seconds: float = 20.0) -> int:
        """SIGTERM; the exit status."""
        family = self.family()
        os.kill(self.pid, signal.SIGTERM)
        try:
            status = self._reap(seconds)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            status = self._reap(10)
        _await_end(family[1:])
        return status

    def family(self) -> list[int]:
        """The ids of the process and of those below it (the JVM, Spark's Python workers)."""
        return [self.pid, *descendants(self.pid)]

    def cpu_seconds(self) -> float:
        """Processor time used so far by the process and those below it."""
        return sum(map(cpu_seconds, self.family()))

    def own_cpu_seconds(self) -> float:
        """Processor time used so far by the process alone."""
        return cpu_seconds(self.pid, children=False)

    def own_memory_mb(self) -> float:
        """Resident memory of the process alone, in MB."""
        return _resident_mb(self.pid)

    def memory_by_kind_mb(self) -> dict[str, float]:
        """Memory in MB that is no file's: of the process (``server``), of its JVM (``java``), of Spark's Python workers (``python``). And
        of the files that the process has mapped, which the system may drop (``files``)."""
        found = {"server": 0.0, "java": 0.0, "python": 0.0, "files": 0.0}
        for process in self.family():
            with suppress(OSError):     # it has ended
                kind = "server" if process == self.pid else "java" if Path(f"/proc/{process}/comm").read_text() == "java\n" else "python"
                status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
                found[kind] += int(status.get("RssAnon", "0").split()[0]) * 1024 / 1e6     # one that has ended has none
                found["files"] += int(status.get("RssFile", "0").split()[0]) * 1024 / 1e6 * (process == self.pid)
        return found

    def memory_mb(self) -> float:
        """Resident memory of the process and those below it, in MB."""
        return sum(map(_resident_mb, self.family()))

    def info(self) -> Any:
        """``GET /info``."""
        return get_json(f"{self.base}/info")

    def wait_processed(self, seconds: float = 60.0) -> None:
        """Wait until the pump has processed everything that was pushed."""
        self._wait(lambda: self.info()["backlog"] == 0, "its backlog does not end", seconds)

    def wait_caught_up(self, seconds: float) -> None:
        """Wait until that is done, and what is evaluated beside the pump too."""
        self.wait_processed(seconds)
        self._wait(lambda: not any(query["progress"]["slow"] for query in get_json(f"{self.base}/queries")["queries"]),
                   "a slow query does not come to its end", seconds)

    def _reap(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def _wait(self, condition: Callable[[], Any], complaint: str, seconds: float = START_SECONDS) -> None:
        def ended() -> bool:
            assert self.running, f"the server ended: {self._tail()}"
            return bool(condition())
        wait_until(ended, seconds, lambda: f"{complaint}: {self._tail()}", ASKED_S)

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def ready(base: str) -> bool:
    """Whether the engine of a server answers."""
    try:
        with urllib.request.urlopen(f"{base}/health/ready", timeout=5) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False


def get_json(url: str) -> Any:
    """GET a JSON resource."""
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/json"}), timeout=30) as answer:
        return json.load(answer)


def _await_end(pids: Sequence[int]) -> None:
    """Wait until processes that a server had started are gone; end those that outlive it."""
    deadline = time.monotonic() + 10
    for pid in pids:
        while _alive(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, parent, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _alive(pid: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] != "Z"


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
    return children


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())


def descendants(pid: int) -> list[int]:
    """The processes below one."""
    children = _children()
    found = list(children.get(pid, []))
    for below in found:
        found += children.get(below, [])
    return found


def cpu_seconds(pid: int, children: bool = True) -> float:
    """User and system time, that of ended children included (`children`)."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15 if children else 13])) / _TICKS_PER_SECOND if fields else 0.0


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0
