"""The examples of docs/sparql.md, "Examples of the dialects": each becomes a case of tests/cases for each spelling in it.

A block is parts under headings: ``# C-SPARQL`` and the like (a text), ``# stream :s`` (items, or the query that makes them), ``# graph :g``
(Turtle), ``# answers`` (lines ``at row``) or ``# refused`` (code and message). Items and rows are written as in tests/cases/README.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.case_files import Case, load_case
from tests.case_rows import PREFIXES

PAGE = (Path(__file__).parents[1] / "docs" / "sparql.md").read_text(encoding="utf-8")
DIALECTS = ("C-SPARQL", "RSP-QL", "CQELS-QL", "Thalweg")
PROLOGUE = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())

_HEADING = re.compile(rf"^# ((?:{'|'.join(DIALECTS)})|stream :\w+|graph :\w+|answers|refused)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^#### ([\w-]+)\n(.*?)```example\n(.*?)```", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\| what \| " + r" \| ".join(DIALECTS) + r" \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(#([\w-]+)\)")


@dataclass(frozen=True)
class Example:
    """The parts of a block: texts by dialect; streams and graphs by local name; the answers as written, or the refusal."""

    name: str
    texts: dict[str, str] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    graphs: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    refused: str = ""

    def case(self, dialect: str, folder: Path) -> Case:
        """The text of a dialect as the query ``q`` of a case, written into `folder`."""
        (folder / "q.rq").write_text(PROLOGUE + self.texts[dialect], "utf-8")
        pushed: dict[str, dict[str, str]] = {}
        for name, content in self.streams.items():
            made = content.startswith("REGISTER")
            (folder / f"{name}.{'rq' if made else 'events'}").write_text(PROLOGUE + content if made else content, "utf-8")
            pushed |= {} if made else {name: {}}
        for name, content in self.graphs.items():
            (folder / f"{name}.ttl").write_text(content, "utf-8")
        spec = {"about": self.name, "streams": pushed, "graphs": {f"{PREFIXES['']}{name}": f"{name}.ttl" for name in self.graphs}}
        (folder / "case.json").write_text(json.dumps(spec), "utf-8")
        lines = ["query,at,row", *(f"q,{line.replace(' ', ',', 1)}" for line in self.answers)]
        (folder / "expected.csv").write_text("\n".join(lines) + "\n", "utf-8")
        return load_case(folder)


@dataclass(frozen=True)
class Row:
    """A row of the tables: what it is about, a cell for each of DIALECTS, the name of its example."""

    what: str
    cells: dict[str, str]
    example: str


def examples() -> dict[str, Example]:
    """All examples by name; the stream that the page says they share is in those that bring none."""
    shared = re.search(r"```items\n(.*?)```", PAGE, re.DOTALL)
    assert shared
    return {name: _read(name, block, shared[1]) for name, _, block in _EXAMPLE.findall(PAGE)}


def rows() -> list[Row]:
    """The rows of all tables whose columns are the dialects."""
    found = []
    for table in _TABLE.findall(PAGE):
        for line in table.splitlines():
            what, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            link = _LINK.search(what)
            found.append(Row(what, dict(zip(DIALECTS, cells, strict=True)), link[1] if link else ""))
    return found


def _read(name: str, block: str, shared: str) -> Example:
    before, *parts = _HEADING.split(block)
    assert not before, f"{name}: {before!r} stands before the first heading"
    example = Example(name)
    for heading, content in zip(parts[::2], parts[1::2], strict=True):
        kind, _, local = heading.partition(" :")
        match kind:
            case "stream":
                example.streams[local] = content.strip() + "\n"
            case "graph":
                example.graphs[local] = content
            case "answers":
                example.answers.extend(content.split("\n")[1:-1])
            case "refused":
                example = Example(name, example.texts, example.streams, example.graphs, example.answers, content.strip())
            case _:
                example.texts[kind] = content.strip()
    if all(content.startswith("REGISTER") for content in example.streams.values()):
        example.streams["rooms"] = shared
    return example
