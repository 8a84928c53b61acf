"""Results to Kafka: each event of a query that has a `sink` is a record of its topic.

A sink reads the result log from the last event that the brokers have acknowledged, and writes in transactions, all of a query to one
partition. That place is kept in a file: after a crash what was written and not noted is written again, under the same keys, so that a
reader can leave it out.
"""

import json
import logging
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.files import whole_file
from engine.runtime.errors import plain
from engine.runtime.resources import Notice, QueryInfo, ResultEvent
from engine.supervision import Keeper, Persistent
from server.feeds.frames import Frame, jsonl, message, result_frames
from server.feeds.options import Variant, parse_id
from server.limits import Limits

_LOG = logging.getLogger(__name__)
_LOOK_S = 1.0       # between two looks at what queries there are, and at the log where nothing is heard of
_PAGE = 64          # results in a transaction
_STAGED = ".part~"  # no name of a query ends so
Given = tuple[str, Mapping[str, Any]]
"""The generation of a query, and its option ``sink``."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a query's resource tells of its sink: ``starting``, ``writing``, or ``waiting`` where it has failed with `error`, and is begun
    again; the last event that has been written."""

    state: str = "starting"
    last_id: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "lastEventId": self.last_id, "error": self.error}


class Sink:
    """Writes the results of one generation of a query until `stop`."""

    def __init__(self, engine: Any, limits: Limits, name: str, given: Given, place: Path) -> None:
        self._engine, self._limits, self._name, self._place_file = engine, limits, name, place
        self._epoch, self._given = given
        self._transactions, self._seq = self._noted()
        self._begun = False
        self._written = 0
        self._woken = threading.Event()
        self.thread = Persistent(f"sink of {name}", self._write, self._failed, _LOOK_S, lambda: self._written)

    @property
    def sent(self) -> Sent:
        last = f"{self._epoch}-{self._seq}" if self._seq else None
        if (error := self.thread.error) is not None:
            return Sent("waiting", last, error)
        return Sent("writing" if self._begun else "starting", last)

    def wake(self) -> None:
        """There are results."""
        self._woken.set()

    def stop(self) -> None:
        self.thread.stop()
        self._woken.set()

    def _noted(self) -> tuple[str, int]:
        """The id of the transactions, and the last result of this generation that was written."""
        noted = _noted(self._place_file)
        place = parse_id(noted.get("place", ""))
        return noted.get("transactions", f"thalweg-{uuid.uuid4()}"), place[1] if place is not None and place[0] == self._epoch else 0

    def _note(self) -> None:
        self._place_file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._place_file, self._place_file.with_name(f"{self._place_file.name}{_STAGED}")) as file:
            file.write(json.dumps({"place": f"{self._epoch}-{self._seq}", "transactions": self._transactions}).encode())

    def _failed(self, failure: Exception, wait_s: float) -> str:
        self._begun, said = False, plain(failure)
        _LOG.log(logging.INFO if said == self.thread.error else logging.WARNING,
                 "the results of %s are written to %s again after %g s: %s", self._name, self._given["topic"], wait_s, said)
        return said

    def _write(self) -> None:
        self._note()
        info: QueryInfo = self._engine.query(self._name)
        variant = Variant(self._given.get("mode") or ("full" if info.output == "rstream" else "delta"))
        writer = self._engine.topic_writer(self._given["bootstrapServers"], self._given["topic"], self._transactions)
        try:
            while not self.thread.ended.is_set():
                self._woken.clear()
                while records := self._records(info, variant):
                    writer.send(records[1], self._name.encode())
                    self._seq = records[0]
                    self._written += len(records[1])
                    self._note()
                    if self.thread.ended.is_set():
                        return
                self._begun = True
                self.thread.began()
                self._woken.wait(_LOOK_S)
        finally:
            writer.close()

    def _records(self, info: QueryInfo, variant: Variant) -> tuple[int, list[tuple[bytes, bytes]]] | None:
        """What the next transaction writes, and the number of its last result; None where there is nothing. A key is ``query:epoch-seq``,
        of a result in pieces ``query:epoch-seq/number``; of results that the log has no longer ``query:epoch-seq/gap``, of the first."""
        log = self._engine.results
        bounds = log.bounds(self._name)
        if bounds.epoch != self._epoch or bounds.newest <= self._seq:
            return None
        seq, records = self._seq, list[tuple[bytes, bytes]]()
        if bounds.oldest > seq + 1:
            first = f"{self._epoch}-{seq + 1}"
            gap = message("gap", requested=first, oldestId=f"{self._epoch}-{bounds.oldest}", reason="retention",
                          dropped=bounds.oldest - 1 - seq)
            records.append((f"{self._name}:{first}/gap".encode(), jsonl(gap)[:-1]))
            seq = bounds.oldest - 1
        for event in log.read(self._name, seq, _PAGE, self._limits.page_bytes):
            if event.epoch == self._epoch:
                records += self._of_event(event, info, variant)
                seq = event.seq
        return seq, records

    def _of_event(self, event: ResultEvent, info: QueryInfo, variant: Variant) -> Iterator[tuple[bytes, bytes]]:
        event.meta.setdefault("graph", f"{info.iri}/results/{event.id}")
        before = None
        if variant.mode == "delta" and not (event.added or event.removed):
            known = self._engine.results.before(self._name, event.seq)
            before = known.full if known is not None and known.epoch == event.epoch else None
        frames: list[Frame] = result_frames(event, before, variant, self._limits.result_event)
        for number, frame in enumerate(frames):
            key = f"{self._name}:{event.id}" + (f"/{number}" if len(frames) > 1 else "")
            yield key.encode(), jsonl(frame)[:-1]


def _noted(place: Path) -> dict[str, str]:
    """What a sink's file says; nothing where it is not there, or torn: all is written again."""
    try:
        noted = json.loads(place.read_text(encoding="utf-8"))
        return noted if isinstance(noted, dict) else {}
    except (FileNotFoundError, ValueError):
        return {}


class Sinks:
    """The sinks of all queries that have one."""

    def __init__(self, engine: Any, limits: Limits) -> None:
        self._engine = engine
        self._keeper = Keeper("sinks", self._wanted, lambda name, given: Sink(engine, limits, name, given, self._folder / name), _LOOK_S)

    @property
    def _folder(self) -> Path:
        folder: Path = self._engine.settings.sinks_folder
        return folder

    def start(self) -> None:
        """Begin, if there are brokers to write to."""
        if self._engine.settings.kafka:
            self._engine.subscribe(self._hear)
            self._keeper.worker.start()

    def stop(self, within_s: float = 5.0) -> None:
        if not self._keeper.stop(within_s):
            _LOG.warning("sinks have not ended within %g s", within_s)

    def sent(self, name: str, given: Mapping[str, Any]) -> Sent:
        """How far the sink of a query is."""
        if (servers := given["bootstrapServers"]) not in self._engine.settings.kafka:
            return Sent("waiting", _noted(self._folder / name).get("place"), f"the server was not started with --kafka {servers}")
        sink = self._keeper.get(name)
        return Sent() if sink is None else sink.sent

    def troubles(self) -> list[dict[str, str]]:
        """The sinks that wait, as members of ``degraded``."""
        told = {name: self.sent(name, given) for name, (_, given) in self._engine.sinks().items()}
        return [{"kind": "sink", "name": name, "reason": sent.error or ""} for name, sent in told.items() if sent.state == "waiting"]

    def _hear(self, notice: Notice) -> None:
        if notice.kind == "result" and notice.query is not None and (sink := self._keeper.get(notice.query)) is not None:
            sink.wake()

    def _wanted(self) -> dict[str, Given]:
        """What there is to be written, to servers that are known. Places of queries that have gone are forgotten."""
        if not self._engine.ready:
            return {}
        wanted: dict[str, Given] = self._engine.sinks()
        for left in self._folder.iterdir() if self._folder.is_dir() else ():
            if left.name not in wanted and not left.name.endswith(_STAGED):
                left.unlink(missing_ok=True)
        return {name: given for name, given in wanted.items() if given[1]["bootstrapServers"] in self._engine.settings.kafka}
