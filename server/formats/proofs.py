"""Proofs of answers as JSON and as text (docs/why.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.ir.quoting import quote, unescape
from engine.ir.rules import TRIPLE, Rule, RuleSet
from engine.ir.spans import Span
from engine.ir.terms import RDF_TYPE, XSD
from engine.why.explain import Explanation, Match, Members, Node
from engine.why.proofs import Derived
from engine.why.trees import Absent, Asserted, Holds, Source, Stated, Static, Streamed
from engine.runtime.resources import iso

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


def as_json(found: Explanation, rules: Mapping[str, RuleSet]) -> list[Json]:
    """The proofs as nested objects, each with its `kind`."""
    return [_node(proof, rules) for proof in found.proofs]


def _node(node: Node, rules: Mapping[str, RuleSet]) -> Json:
    match node:
        case Match(row=row, premises=premises):
            return {"kind": "match", "bindings": _bindings(row), "premises": [_node(part, rules) for part in premises]}
        case Members(text=text, count=count, shown=shown):
            return {"kind": "group", "text": text, "count": count, "members": [_node(part, rules) for part in shown]}
        case Derived(fact=fact, rule=rule, row=row, premises=premises):
            return {"kind": "derived", **_fact(fact), "rule": _rule(rule, rules), "bindings": _bindings(row),
                    "premises": [_node(part, rules) for part in premises]}
        case Asserted(fact=fact, sources=sources):
            return {"kind": "asserted", **_fact(fact), "sources": [_source(source) for source in sources]}
        case Absent(text=text):
            return {"kind": "absent", "text": text}
        case Holds(text=text):
            return {"kind": "condition", "text": text}


def _bindings(row: Mapping[str, str]) -> dict[str, Term]:
    return {name: term(value) for name, value in sorted(row.items()) if not name.startswith(("_:", "."))}


def _fact(fact: tuple[str, tuple[str, ...]]) -> Json:
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


def _source(source: Source) -> Json:
    match source:
        case Streamed(stream=stream, times=times, query=query):
            return {"stream": stream, "at": [iso(ms) or ms for ms in times], **({"query": query} if query is not None else {})}
        case Static(graph=graph):
            return {"graph": graph}
        case Stated(rules=rules, span=span):
            return {"rules": rules, **_line(span)}


def _line(span: Span | None) -> Json:
    return {} if span is None else {"line": span.line}


# --- text

def as_text(explained: Mapping[str, Any]) -> str:
    """What a person at a terminal reads: a line per fact, indented under what it proves."""
    head = f"{explained['query']}, result {explained['result']}, row {explained['row']}, at {explained['at']}"
    lines = [head, *_bound(explained["answer"])]
    for number, proof in enumerate(explained["proofs"], 1):
        lines += ["", f"proof {number}" + (f" of {len(explained['proofs'])}" if len(explained["proofs"]) > 1 else "")]
        lines += [line for part in proof["premises"] for line in _lines(part, 1)] or ["  the pattern is empty: nothing is needed"]
    if explained["more"]:
        lines += ["", "There are more proofs."]
    return "\n".join(lines) + "\n"


def _lines(node: Json, depth: int) -> Iterator[str]:
    pad = "  " * depth
    match node["kind"]:
        case "match":
            yield f"{pad}a solution"
            yield from (f"{pad}    {line}" for line in _bound(node["bindings"]))
            yield from _below(node["premises"], depth)
        case "group":
            yield f"{pad}{node['text']} over {node['count']} solutions"
            yield from _below(node["members"], depth)
            if len(node["members"]) < node["count"]:
                yield f"{pad}  and {node['count'] - len(node['members'])} more"
        case "derived":
            yield f"{pad}{_shown(node)}"
            yield f"{pad}    by {_named(node['rule'])}"
            yield from _below(node["premises"], depth)
        case "asserted":
            yield f"{pad}{_shown(node)}"
            yield from (f"{pad}    {_said(source)}" for source in node["sources"])
        case "absent":
            yield f"{pad}nothing matches {node['text']}"
        case "condition":
            yield f"{pad}{node['text']}"


def _below(nodes: Iterable[Json], depth: int) -> Iterator[str]:
    return (line for part in nodes for line in _lines(part, depth + 1))


def _bound(bindings: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [f"?{name} = {token(value)}" for name, value in bindings.items()]


def _shown(node: Json) -> str:
    if "atom" in node:
        return f"{node['atom']['predicate']}({' '.join(map(token, node['atom']['terms']))})"
    s, p, o = (token(node["triple"][place]) for place in ("subject", "predicate", "object"))
    return f"{s} {'a' if p == RDF_TYPE else p} {o}"


def _named(rule: Json) -> str:
    name = rule["name"] or f"rule {rule.get('number', '')}".strip()
    line = f", line {rule['line']}" if "line" in rule else ""
    return f"{name} ({rule['set']}{line})"


def _said(source: Json) -> str:
    if "stream" in source:
        made = f", made by the query {source['query']}" if "query" in source else ""
        return f"on the stream <{source['stream']}> at {', '.join(map(str, source['at']))}{made}"
    if "graph" in source:
        return f"in the graph <{source['graph']}>"
    return f"stated in the rules {source['rules']}" + (f", line {source['line']}" if "line" in source else "")
