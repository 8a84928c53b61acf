"""Proofs of answers as JSON (docs/why.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.ir.rules import TRIPLE, Rule, RuleSet
from engine.ir.spans import Span
from engine.ir.terms import XSD, quote, unescape
from engine.runtime.resources import iso
from engine.timeline import MAX, MIN, Interval
from engine.why.explain import Match, Members, Node
from engine.why.trees import Absent, Asserted, Derived, Filed, Holds, Source, Stated, Static, Step, Streamed

Term = dict[str, str]
Json = dict[str, Any]


def term(token: str) -> Term:
    """A token as SPARQL Results JSON has it."""
    if token.startswith("<"):
        return {"type": "uri", "value": token[1:-1]}
    if token.startswith("_:"):
        return {"type": "bnode", "value": token[2:]}
    end = token.rindex('"')
    literal = {"type": "literal", "value": unescape(token[1:end])}
    rest = token[end + 1:]
    if rest.startswith("@"):
        literal["xml:lang"] = rest[1:]
    elif rest:
        literal["datatype"] = rest[3:-1]
    return literal


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


Clock = Callable[[int], Any]
"""How an instant (ms) is written."""


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


def times(when: Interval, at: Clock = clock) -> Json:
    """An interval: its ends, null where it has none, and whether they belong to it."""
    start, end = when.lo // 2, (when.hi + 1) // 2
    return {"from": None if when.lo == MIN else at(start), "to": None if when.hi == MAX else at(end),
            "fromIncluded": when.lo != MIN and not when.lo % 2, "toIncluded": when.hi != MAX and not when.hi % 2}


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
