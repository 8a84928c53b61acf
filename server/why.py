"""Why a row of a result: from what its evaluation saw to the proofs that are shown, for the route and the command line alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from engine.ir.rules import RuleSet
from engine.ir.statement import Program, TimedProgram
from engine.ir.strata import Unending
from engine.output import triples_in
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import RULES_OF
from engine.runtime.evidence import Evidence
from engine.runtime.resources import ResultEvent, iso
from engine.why.explain import Case, Explanation, Match, UnexplainedError, explain
from engine.why.programs import explain_reported, explain_told
from engine.why.trees import TooMuchError
from server.formats.proofs import as_json, term, token
from server.problems import Problem

ANY = 1 << 40


def explained(seen: Evidence, row: int, most: int, mode: str = "full", triples: int = ANY) -> dict[str, Any]:
    """At most `most` proofs of row number `row` (from 0) of a result; of the whole relation at T, or with mode ``delta`` of what ISTREAM
    gives. Problems: 404 for a row that is not there, 422 for what cannot be explained or a search that is too long. `triples` is how
    many the windows and graphs may have."""
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
    return {"query": event.query, "result": event.id, "row": row, "at": iso(event.at_ms) or event.at_ms,
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
    """The rows of a payload, in its order."""
    match event.kind:
        case "graph":
            return [dict(zip("spo", triple)) for triple in triples_in(payload)]
        case "boolean":
            return [{}] if orjson.loads(payload)["boolean"] else []
    bindings = orjson.loads(payload)["results"]["bindings"]
    return [{name: token(value) for name, value in row.items()} for row in bindings]
