"""A registered query by what was said of it: its definition and its statement, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.ir.programs import timed_statement
from engine.ir.statement import Statement
from engine.runtime.resources import RESULT_KINDS
from engine.runtime.rule_store import ParseRules
from engine.runtime.ticks import Timetable


@dataclass(frozen=True, slots=True)
class Definition:
    """What was registered: query number `number` in its generation `generation`; it sees events of positions > `since`. `stream`
    is the IRI of the stream that it registers, if it does. `media` is the type of a text that is a rule program with a time of its own."""

    name: str
    text: str
    number: int
    generation: int
    since: int
    options: Mapping[str, Any] = field(default_factory=dict)
    registered_ms: int | None = None
    restarts: int = 0
    stream: str | None = None
    media: str | None = None

    @property
    def epoch(self) -> str:
        """The id of this generation; results have the ids ``{epoch}-{seq}``."""
        return f"q{self.number}c{self.generation}"

    @property
    def order(self) -> tuple[int, int]:
        """Greater for what was registered later under the same name."""
        return self.number, self.generation

    @classmethod
    def of(cls, name: str, payload: Mapping[str, Any], stream: str | None, old: Definition | None, numbers: int) -> Definition:
        """Of the payload of a registration, in place of `old` or as the next of `numbers` queries; the payload may say which it is."""
        number, generation = (old.number, old.generation + 1) if old is not None else (numbers + 1, 1)
        number, generation = payload.get("number", number), payload.get("generation", generation)
        return cls(name, payload["text"], number, generation, payload["since"], payload.get("options", {}), payload.get("registered"),
                   payload.get("restarts", 0), stream, payload.get("media"))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "text": self.text, "number": self.number, "generation": self.generation, "since": self.since,
                "options": dict(self.options), "registered": self.registered_ms, "restarts": self.restarts, "epoch": self.epoch,
                "stream": self.stream, **({} if self.media is None else {"media": self.media})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Definition:
        return cls(value["name"], value["text"], value["number"], value["generation"], value["since"], value["options"],
                   value["registered"], value["restarts"], value.get("stream"), value.get("media"))


def read_statement(text: str, media: str | None, parse: Callable[[str], Statement], parse_rules: ParseRules) -> Statement:
    """The statement of a text that was registered. What it is says the text, or `media`: the language of a rule program with a time of
    its own. Raises DiagnosticError."""
    return parse(text) if media is None else timed_statement(parse_rules(text, media, "program"), text, media)


class Reader:
    """What a query reads and makes."""

    __slots__ = ()
    definition: Definition
    statement: Statement
    timetable: Timetable

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def epoch(self) -> str:
        return self.definition.epoch

    @property
    def streams(self) -> tuple[str, ...]:
        return self.timetable.streams

    @property
    def makes(self) -> str | None:
        """The stream that its results are: only triples can be read."""
        stream = self.definition.stream
        return stream if stream is not None and RESULT_KINDS[self.statement.form] == "graph" else None

    @property
    def graphs(self) -> frozenset[str]:
        """Static graphs that it reads or reasons with."""
        return frozenset(source.iri for source in (*self.statement.graphs, *self.statement.reasoning_graphs))

    @property
    def rules(self) -> frozenset[str]:
        """Rule sets that it reasons by."""
        return frozenset(source.name for source in self.statement.rules)


@dataclass(frozen=True, slots=True)
class Registered(Reader):
    """A query at the end of the log, registered by the record at `registered`. `wish` is what the last record about it asked for,
    ``running`` or ``paused``; `changed` is the position of that record."""

    definition: Definition
    statement: Statement
    timetable: Timetable
    wish: str
    registered: int
    changed: int
