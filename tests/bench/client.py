"""The requests of the benchmarks: a connection that is kept, and pushes at a given pace."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SPARQL_QUERY = "application/sparql-query"
TIMED = "text/x-timed-ntriples"


class Client:
    """One connection to the server; opened anew where the server has closed it between requests."""

    def __init__(self, base: str) -> None:
        address = urlsplit(base)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)

    def request(self, method: str, path: str, body: bytes | None = None, media: str | None = None, patience_s: float = 0) -> Any:
        """The JSON answer; RuntimeError unless it is a success. What the server has no room for yet (503) is sent again, when it says so,
        for so many seconds."""
        until = time.monotonic() + patience_s
        while True:
            answer, text = self._answered(method, path, body, media)
            if answer.status == 503 and time.monotonic() < until:
                time.sleep(float(answer.headers.get("Retry-After", 1)))
                continue
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:1000].decode(errors='replace')}")
            return json.loads(text) if text else None

    def _answered(self, method: str, path: str, body: bytes | None, media: str | None) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {"Accept": "application/json"} | ({"Content-Type": media} if media else {})
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            self._connection.close()
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        return answer, answer.read()

    def put_stream(self, name: str, iri: str, time_: str = "arrival", **more: Any) -> None:
        self.request("PUT", f"/streams/{name}", json.dumps({"iri": iri, "time": time_, **more}).encode(), "application/json")

    def put_query(self, name: str, text: str) -> None:
        self.request("PUT", f"/queries/{name}", text.encode(), SPARQL_QUERY)

    def stats(self, name: str) -> Any:
        return self.request("GET", f"/queries/{name}/stats")

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Push:
    """A push that was answered: its number, and the wall times (s) at which it was due, begun, and answered."""

    number: int
    due: float
    begun: float
    answered: float


def sleep_until(moment: float) -> None:
    """Sleep until the wall time `moment` (s): a benchmark is the one place where time is to pass."""
    while (left := moment - time.time()) > 0:
        time.sleep(left)


def push_at_pace(base: str, path: str, bodies: Callable[[int], bytes], media: str, *, begin: float, interval_s: float, count: int,
                 connections: int = 1, query: Callable[[int], str] = lambda number: "") -> list[Push]:
    """Push `bodies(number)` at `begin + number * interval_s`, in order on one connection, or spread over several."""
    pushes: list[Push] = []
    failures: list[BaseException] = []
    numbers = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        client = Client(base)
        try:
            for number, body in _prepared(numbers, lock, bodies):
                due = begin + number * interval_s
                sleep_until(due)
                begun = time.time()
                client.request("POST", path + query(number), body, media)
                pushes.append(Push(number, due, begun, time.time()))
                if failures:
                    return
        except BaseException as failure:
            failures.append(failure)
        finally:
            client.close()

    threads = [threading.Thread(target=work, name=f"pusher-{i}") for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sorted(pushes, key=lambda push: push.number)


def _prepared(numbers: Iterator[int], lock: threading.Lock, bodies: Callable[[int], bytes]) -> Iterator[tuple[int, bytes]]:
    """The next push of a thread, its body made before it is due."""
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        yield number, bodies(number)


def delays_ms(pushes: Sequence[Push]) -> list[float]:
    """How long after their time the pushes were begun: large figures say that the client could not keep the pace."""
    return [(push.begun - push.due) * 1000 for push in pushes]
