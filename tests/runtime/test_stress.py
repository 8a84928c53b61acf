"""Eight clients of a real server on Spark read, ask, register, replace, remove and write beside pushes, and get the documented answers."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.live import ServerProcess
from tests.unit.runtime.test_rules import alarm

pytestmark = pytest.mark.soak

CLIENTS, ROUNDS, BEGIN_MS = 8, 4, 1_767_225_600_000
QUERY, FEED = "application/sparql-query", "text/event-stream"
TEXT = """REGISTER QUERY {} AS SELECT ?s ?o FROM STREAM <http://ex.org/{}> [RANGE {}s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}"""
ASKED = "SELECT ?o FROM STREAM <http://ex.org/{}> [RANGE 2s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}"
EVENTS = {"time": "event"}
READS = ("/streams", "/queries", "/graphs", "/rules", "/info", "/health/ready", "/streams/s", "/streams/s/items", "/streams/s/dead-letters",
         "/queries/q", "/queries/q/plan", "/queries/q/stats", "/queries/q/results", "/queries/swapped", "/queries/swapped/results",
         "/queries/swapped/stats", "/queries/swapped/plan?level=spark", "/rules/alarms", "/graphs?graph=http://ex.org/g",
         f"/sparql?query={quote(ASKED.format('s'))}", f"/sparql?query={quote(ASKED.format('unread'))}")


class Client:
    """One connection; `wrong` has the answers that are not as they should be, of all clients."""

    def __init__(self, base: str, wrong: list[str]) -> None:
        address = urlsplit(base)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        self._wrong = wrong

    def expect(self, wanted: tuple[int, ...], method: str, path: str, body: str | None = None, media: str = "application/json",
               accept: str = "*/*") -> bytes:
        self._connection.request(method, path, None if body is None else body.encode(), {"Content-Type": media, "Accept": accept})
        answer = self._connection.getresponse()
        text = answer.read1(4096) if accept == FEED else answer.read()
        if accept == FEED:
            self._connection.close()
        if answer.status not in wanted:
            self._wrong.append(f"{method} {path}: {answer.status} {text[:300]!r}")
        return text

    def put_stream(self, name: str) -> None:
        self.expect((201,), "PUT", f"/streams/{name}", json.dumps({**EVENTS, "iri": f"http://ex.org/{name}"}))

    def push(self, name: str, second: int) -> None:
        line = f'{BEGIN_MS + second * 1000}\t<http://ex.org/x> <http://ex.org/p> "{second % 7}" .\n'
        self.expect((202,), "POST", f"/streams/{name}", line, "text/x-timed-ntriples")


def one_round(client: Client, number: int, turn: int) -> None:
    """What one client does with names of its own, and with what all replace and read."""
    own = f"own{number}"
    client.put_stream(own)
    client.expect((200,), "GET", f"/streams/{own}")
    client.expect((201,), "PUT", f"/queries/{own}", TEXT.format(own, own, 2), QUERY)
    client.expect((200,), "GET", f"/queries/{own}/results")
    client.expect((200,), "GET", f"/queries/{own}/plan")
    client.push(own, turn)
    client.expect((201, 200), "PUT", "/queries/swapped?replace=true", TEXT.format("swapped", "s", 2 + number + CLIENTS * turn), QUERY)
    client.expect((200,), "GET", "/queries/swapped/results", accept=FEED)
    client.expect((202,), "POST", "/queries/swapped/restart?reset=true")
    client.expect((200, 201), "PUT", "/graphs?graph=http://ex.org/g", f'<http://a> <http://ex.org/p> "{number}" .', "text/turtle")
    client.expect((200,), "POST", "/graphs?graph=http://ex.org/g", f'<http://a> <http://ex.org/p> "{turn} {number}" .', "text/turtle")
    client.expect((200,), "PUT", "/rules/alarms", alarm(f"{number} {turn}"), "text/x-rif-ps")
    for path in READS[number % 2:] if turn % 2 else READS[::-1]:
        client.expect((200,), "GET", path)
    client.expect((204,), "DELETE", f"/queries/{own}")
    client.expect((410,), "GET", f"/queries/{own}")
    client.expect((204,), "GET", f"/queries/{own}/results", accept=FEED)
    client.expect((204,), "DELETE", f"/streams/{own}")
    client.expect((404,), "GET", f"/streams/{own}")


@pytest.mark.spark
def test_eight_clients_beside_pushes_get_the_documented_answers(tmp_path: Path) -> None:
    wrong: list[str] = []
    with ServerProcess(tmp_path / "data") as server:
        first = Client(server.base, wrong)
        for name in ("s", "unread"):
            first.put_stream(name)
        first.expect((201,), "PUT", "/graphs?graph=http://ex.org/g", '<http://a> <http://ex.org/p> "0" .', "text/turtle")
        first.expect((201,), "PUT", "/rules/alarms", alarm("low"), "text/x-rif-ps")
        for name in ("q", "swapped"):
            first.expect((201,), "PUT", f"/queries/{name}", TEXT.format(name, "s", 2), QUERY)
        done = threading.Event()

        def push() -> None:
            client, second = Client(server.base, wrong), 0
            while not done.wait(0.02):
                second += 1
                client.push("s", second)

        def work(number: int) -> None:
            client = Client(server.base, wrong)
            try:
                for turn in range(ROUNDS):
                    one_round(client, number, turn)
            except Exception as failure:  # told with the others
                wrong.append(f"{type(failure).__name__}: {failure}")

        pushing = threading.Thread(target=push)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
        for thread in (pushing, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        pushing.join()
        assert not wrong, (len(wrong), wrong[:10])
        server.wait_processed()
        last = Client(server.base, wrong)
        states = {query["name"]: query["state"] for query in json.loads(last.expect((200,), "GET", "/queries"))["queries"]}
        assert set(states) == {"q", "swapped"} and set(states.values()) <= {"running", "idle"}, states
