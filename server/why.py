"""Why a row of a result: from what its evaluation saw to the proofs, and these as JSON and as text (docs/why.md), for the route and the
command line alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from engine.ir.printer_facts import number
from engine.ir.rules import TRIPLE, Rule, RuleSet
from engine.ir.spans import Span
from engine.ir.statement import Program, TimedProgram
from engine.ir.strata import Unending
from engine.ir.terms import RDF_TYPE, XSD, quote
from engine.output import json_term, triples_in
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import RULES_OF
from engine.runtime.evidence import Evidence
from engine.runtime.resources import ResultEvent, iso
from engine.timeline import Interval
from engine.why.explain import Case, Explanation, Match, Members, Node, UnexplainedError, explain
from engine.why.programs import explain_reported, explain_told
from engine.why.trees import Absent, Asserted, Derived, Filed, Holds, Source, Stated, Static, Step, Streamed, TooMuchError
from server.formats.values import times
from server.problems import Problem

ANY = 1 << 40
Term = dict[str, str]
Json = dict[str, Any]
Clock = Callable[[Any], Any]
"""How an instant (ms) is written."""


def explained(seen: Evidence, row: int, most: int, mode: str = "full", triples: int = ANY) -> dict[str, Any]:
    """At most `most` proofs of row `row` (from 0) of a result: of the whole relation at T, or with mode ``delta`` of what ISTREAM gives.
    Problems: 404 for no such row, 422 for what cannot be explained, or more than `triples` in windows and graphs."""
    event = seen.event
    found = wanted(event, row, mode)
    size = sum(len(one.triples) for one in seen.events) + sum(map(len, seen.graphs.values()))
    if size > triples:
        raise Problem("not-explained", f"Windows and graphs have {size} triples; proofs are searched for in {triples}.",
                      extra={"limit": triples, "actual": size})
    try:
        proofs, rules = _of_program(seen, found, most) if isinstance(seen.statement.query, Program) else _of_query(seen, found, most)
    except (UnexplainedError, TooMuchError, Unending) as error:
        raise Problem("not-explained", str(error)) from error
    if not proofs.proofs and event.stream == "n":
        raise Problem("no-longer-kept", "What was there when the fact began has been replaced since.")
    if not proofs.proofs:
        raise Problem("internal", "The reference evaluation does not give this row: one of the two evaluations is wrong.",
                      extra={"query": event.query, "result": event.id, "row": row})
    return {"query": event.query, "result": event.id, "row": row, "at": clock(event.at_ms),
            "window": [{**window, "open": iso(window["open"]), "close": iso(window["close"])} for window in event.windows],
            "answer": {name: term(value) for name, value in found.items()}, "proofs": as_json(proofs.proofs, rules),
            "more": proofs.more}


def _of_query(seen: Evidence, row: dict[str, str], most: int) -> tuple[Explanation, Mapping[str, RuleSet]]:
    event = seen.event
    case = Case(seen.statement, event.tick, event.at_ms, event.query, seen.events,
                {iri: Graph(content) for iri, content in seen.graphs.items()}, seen.rules, seen.makers, seen.cut_ms)
    return explain(case, row, most), seen.rules


def _of_program(seen: Evidence, row: dict[str, str], most: int) -> tuple[Explanation, Mapping[str, RuleSet]]:
    """Of a row of stream P or N; the program's own rules go by the query's name."""
    program = seen.statement.query
    assert isinstance(program, Program)
    own = replace(program, rules=replace(program.rules, name=seen.event.query))
    statement = replace(seen.statement, query=own)
    if isinstance(program, TimedProgram):
        found = explain_told(statement, row, seen.events, seen.graphs, seen.makers, most, seen.cut_ms)
    else:
        found = explain_reported(statement, row, seen.events, seen.graphs, RULES_OF, seen.makers, most)
    matches = tuple(Match(row, (proof,), proof.depth, 1 + proof.size) for proof in found.proofs)
    behind = [RULES_OF[program.profile]] if program.profile else []
    return Explanation(matches, found.more), {rules.name: rules for rules in (own.rules, *behind)}


def wanted(event: ResultEvent, row: int, mode: str) -> dict[str, str]:
    """The row as tokens by variable; ``s p o`` of a graph, nothing of ASK."""
    if mode == "delta" and not event.added:
        raise Problem("unknown-parameter", "mode=delta is for ISTREAM: only what was added holds.", extra={"parameter": "mode"})
    rows = rows_of(event, event.payload if mode == "delta" else event.full)
    if row >= len(rows):
        raise Problem("no-such-result", f"The result has {len(rows)} rows, counted from 0.", extra={"rows": len(rows)})
    return rows[row]


def rows_of(event: ResultEvent, payload: bytes) -> list[dict[str, str]]:
    match event.kind:
        case "graph":
            return [dict(zip("spo", triple)) for triple in triples_in(payload)]
        case "boolean":
            return [{}] if orjson.loads(payload)["boolean"] else []
    bindings = orjson.loads(payload)["results"]["bindings"]
    return [{name: token(value) for name, value in row.items()} for row in bindings]


def term(token: str) -> Term:
    """A token as SPARQL Results JSON has it."""
    return orjson.loads(json_term(token))


def token(value: Mapping[str, str]) -> str:
    """The token of a term of SPARQL Results JSON."""
    match value["type"]:
        case "uri":
            return f"<{value['value']}>"
        case "bnode":
            return f"_:{value['value']}"
    if "xml:lang" in value:
        return f"{quote(value['value'])}@{value['xml:lang']}"
    datatype = value.get("datatype", f"{XSD}string")
    return quote(value["value"]) + (f"^^<{datatype}>" if datatype != f"{XSD}string" else "")


def clock(ms: int) -> str | int:
    """An instant as xsd:dateTime, as a number where no calendar has it."""
    return iso(ms) or ms


def as_json(proofs: Iterable[Node], rules: Mapping[str, RuleSet], at: Clock = clock) -> list[Json]:
    """The proofs as nested objects, each with its `kind`."""
    return [_node(proof, rules, at) for proof in proofs]


def _node(node: Node, rules: Mapping[str, RuleSet], at: Clock) -> Json:
    match node:
        case Match(row=row, premises=premises):
            return {"kind": "match", "bindings": _bindings(row), "premises": as_json(premises, rules, at)}
        case Members(text=text, count=count, shown=shown):
            return {"kind": "group", "text": text, "count": count, "members": as_json(shown, rules, at)}
        case Derived(fact=fact, rule=rule, row=row, premises=premises):
            return {"kind": "derived", **fact_json(fact), **_times("during", node.during, at), "rule": _rule(rule, rules),
                    "bindings": _bindings(row), "premises": as_json(premises, rules, at)}
        case Asserted(fact=fact, sources=sources):
            return {"kind": "asserted", **fact_json(fact), **_times("during", node.during, at),
                    "sources": [_source(source, at) for source in sources]}
        case Step(operator=operator, text=text, premises=premises):
            return {"kind": "operator", "operator": operator, "text": text, **_times("during", node.during, at),
                    **_times("over", node.over, at), "premises": as_json(premises, rules, at)}
        case Absent(text=text):
            return {"kind": "absent", "text": text, **_times("during", node.during, at)}
        case Holds(text=text):
            return {"kind": "condition", "text": text}


def _times(name: str, when: Interval | None, at: Clock) -> Json:
    return {} if when is None else {name: times(when, at)}


def _bindings(row: Mapping[str, str]) -> dict[str, Term]:
    return {name: term(value) for name, value in sorted(row.items()) if not name.startswith(("_:", "."))}


def fact_json(fact: tuple[str, tuple[str, ...]]) -> Json:
    predicate, terms = fact
    if predicate == TRIPLE:
        return {"triple": dict(zip(("subject", "predicate", "object"), map(term, terms)))}
    return {"atom": {"predicate": predicate, "terms": [term(value) for value in terms]}}


def _rule(rule: Rule, rules: Mapping[str, RuleSet]) -> Json:
    """Which rule: its set and its name; of a set with a text also its number there (from 1) and the line at which it begins."""
    for name, rule_set in rules.items():
        if rule in rule_set.rules:
            place = rule_set.rules.index(rule)
            span = rule_set.rules[place].span
            return {"set": name, "name": rule.name, **({"number": place + 1, **_line(span)} if span is not None else {})}
    return {"set": None, "name": rule.name}


def _source(source: Source, at: Clock) -> Json:
    match source:
        case Streamed(stream=stream, times=stamps, query=query):
            return {"stream": stream, "at": [at(ms) for ms in stamps], **({"query": query} if query is not None else {})}
        case Static(graph=graph):
            return {"graph": graph}
        case Stated(rules=rules, span=span):
            return {"rules": rules, **_line(span)}
        case Filed(file=file):
            return {"file": file}
    raise TypeError(f"nobody says {source}")


def _line(span: Span | None) -> Json:
    return {} if span is None else {"line": span.line}


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
            case "operator" | "condition":
                yield f"{pad}{node['text']}{when}"
                yield from self._below(node.get("premises", ()), depth)
            case "asserted":
                yield f"{pad}{_shown(node)}{when}"
                yield from (f"{pad}    {self._said(source)}" for source in node["sources"])
            case "absent":
                yield f"{pad}nothing matches {node['text']}{when}"

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
