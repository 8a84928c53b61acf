"""Proofs of answers as a person at a terminal reads them: a line per fact, indented under what it proves (docs/why.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.ir.printer_facts import number
from engine.ir.terms import RDF_TYPE
from server.formats.proofs import Json, token

Clock = Callable[[Any], str]


def as_text(explained: Mapping[str, Any]) -> str:
    """The proofs of a row of a result."""
    head = f"{explained['query']}, result {explained['result']}, row {explained['row']}, at {explained['at']}"
    return _page([head, *_bound(explained["answer"])], explained, [part["premises"] for part in explained["proofs"]], _Writer(str))


def program_as_text(explained: Mapping[str, Any]) -> str:
    """The proofs of a fact of a rule program; times as its text has them."""
    unit, length = explained["unitMs"], explained["granularityMs"]
    writer = _Writer(lambda ms: number(ms, unit), length)
    head = f"{explained['program']}: {_shown(explained)}{writer.when(explained['during'])}"
    return _page([head], explained, [[proof] for proof in explained["proofs"]], writer)


def _page(head: list[str], explained: Mapping[str, Any], proofs: list[list[Json]], writer: _Writer) -> str:
    lines = list(head)
    for place, nodes in enumerate(proofs, 1):
        lines += ["", f"proof {place}" + (f" of {len(proofs)}" if len(proofs) > 1 else "")]
        lines += [line for part in nodes for line in writer.lines(part, 1)] or ["  the pattern is empty: nothing is needed"]
    if explained["more"]:
        lines += ["", "There are more proofs."]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Writer:
    """Writes nodes; `at` writes an instant. On a timeline of granules of `length` ms, intervals go from the first to the last of these."""

    at: Clock
    length: int = 0

    def when(self, times: Json | None) -> str:
        """When a node holds, as the end of a line."""
        if times is None:
            return ""
        start, end = times["from"], times["to"]
        if start is None and end is None:
            return ", always"
        if self.length and start is not None and end is not None:
            first, last = start // self.length, end // self.length - 1
            return f", at {first}" if first == last else f", during [{first}, {last}]"
        if start == end:
            return f", at {self.at(start)}"
        begin = "(-inf" if start is None else f"{'[' if times['fromIncluded'] else '('}{self.at(start)}"
        return f", during {begin}, {'inf)' if end is None else self.at(end) + (']' if times['toIncluded'] else ')')}"

    def lines(self, node: Json, depth: int) -> Iterator[str]:
        """The lines of a node and all below it."""
        pad, when = "  " * depth, self.when(node.get("during"))
        match node["kind"]:
            case "match":
                yield f"{pad}a solution"
                yield from (f"{pad}    {line}" for line in _bound(node["bindings"]))
                yield from self._below(node["premises"], depth)
            case "group":
                yield f"{pad}{node['text']} over {node['count']} solutions"
                yield from self._below(node["members"], depth)
                if len(node["members"]) < node["count"]:
                    yield f"{pad}  and {node['count'] - len(node['members'])} more"
            case "derived":
                yield f"{pad}{_shown(node)}{when}"
                yield f"{pad}    by {_named(node['rule'])}"
                yield from self._below(node["premises"], depth)
            case "operator":
                yield f"{pad}{node['text']}{when}"
                yield from self._below(node["premises"], depth)
            case "asserted":
                yield f"{pad}{_shown(node)}{when}"
                yield from (f"{pad}    {self._said(source)}" for source in node["sources"])
            case "absent":
                yield f"{pad}nothing matches {node['text']}{when}"
            case "condition":
                yield f"{pad}{node['text']}"

    def _below(self, nodes: Iterable[Json], depth: int) -> Iterator[str]:
        return (line for part in nodes for line in self.lines(part, depth + 1))

    def _said(self, source: Json) -> str:
        if "stream" in source:
            made = f", made by the query {source['query']}" if "query" in source else ""
            return f"on the stream <{source['stream']}> at {', '.join(map(self.at, source['at']))}{made}"
        if "graph" in source:
            return f"in the graph <{source['graph']}>"
        if "file" in source:
            return f"in the file {source['file']}"
        return f"stated in the rules {source['rules']}" + (f", line {source['line']}" if "line" in source else "")


def _bound(bindings: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [f"?{name} = {token(value)}" for name, value in bindings.items()]


def _shown(node: Mapping[str, Any]) -> str:
    if "atom" in node:
        return f"{node['atom']['predicate']}({' '.join(map(token, node['atom']['terms']))})"
    s, p, o = (token(node["triple"][place]) for place in ("subject", "predicate", "object"))
    return f"{s} {'a' if p == RDF_TYPE else p} {o}"


def _named(rule: Json) -> str:
    name = rule["name"] or f"rule {rule.get('number', '')}".strip()
    line = f", line {rule['line']}" if "line" in rule else ""
    return f"{name} ({rule['set']}{line})"
