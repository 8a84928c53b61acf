"""``thalweg why``: the proofs of a row, of a replay of recorded streams or of a running server's result; and those of a fact of a rule
program with a time of its own."""

import argparse
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.client import HTTPException
from typing import Any, TextIO
from urllib.parse import quote, urlencode

from engine.ir.printer_facts import print_facts
from engine.ir.rules import TRIPLE, Fact, RuleSet
from engine.ir.strata import Unending
from engine.ir.terms import Constant
from engine.reference.formulas import as_fact, point_of
from engine.runtime.batch import Executor
from engine.runtime.place import Place, executor_at
from engine.runtime.replay import recorded_evidence, with_rules
from engine.timeline import ALWAYS, MAX, MIN, Interval
from engine.why.programs import Proved, explain_fact
from engine.why.index import Given
from engine.why.trees import Filed, Static, Streamed, TooMuchError
from grammar.rule_sets import parse_facts
from server.formats.media import JSON, TEXT
from server.formats.values import times
from server.offline import Files, chosen, told
from server.offline_programs import is_program, read_facts, read_program, static_triples, streamed_triples
from server.problems import Problem, dumps
from server.why import as_json, as_text, explained, fact_json, program_as_text

_TIMEOUT_S = 120


@told
def prove(given: argparse.Namespace, out: TextIO, executor: Callable[[Place], AbstractContextManager[Executor]] = executor_at) -> None:
    """Replay the recordings, then prove a row of the result at ``--at``; the exit status."""
    files = Files.of(given)
    queries = with_rules(files.queries, files.rules)
    name = given.name or (next(iter(queries)) if len(queries) == 1 else "")
    if name not in queries:
        raise ValueError(f"--name must be one of {', '.join(queries)}.")
    streams = files.streams()
    place = chosen(given, files, streams)
    with executor(place) as used:
        seen = recorded_evidence(queries, streams, files.graphs, used, files.rule_sets, name, given.at, given.ceased)
    found = {**explained(seen, given.row, given.max, given.mode), "executor": place.name}
    _show(found, as_text, given, out)


def _show(found: dict[str, Any], as_text: Callable[[dict[str, Any]], str], given: argparse.Namespace, out: TextIO) -> None:
    out.write(as_text(found) if given.format == "text" else dumps(found).decode() + "\n")


def ask(given: argparse.Namespace, out: TextIO) -> int:
    query = f"{given.url.rstrip('/')}/queries/{quote(given.name, safe='')}"
    try:
        found = given.result or _last(query)
        if found == "none":
            return _told(f"thalweg: The query {given.name!r} has no result yet.")
        wish = urlencode({"row": given.row, "max": given.max, "mode": given.mode})
        media = TEXT if given.format == "text" else JSON
        print(_read(f"{query}/results/{quote(found, safe='')}/why?{wish}", media), end="", file=out)
    except urllib.error.HTTPError as refusal:
        return _told(refusal.read().decode("utf-8", "replace").rstrip("\n") or f"thalweg: {given.url} answers {refusal}.")
    except (OSError, ValueError, HTTPException) as error:
        return _told(f"thalweg: {given.url} does not answer: {error}")
    return 0


def _told(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


def _last(query: str) -> str:
    """The id of a query's last result, or ``none``. An answer to HEAD could not say what is wrong, so the query is asked for before."""
    _read(query, TEXT)
    with urllib.request.urlopen(urllib.request.Request(f"{query}/results", method="HEAD"), timeout=_TIMEOUT_S) as reply:
        found = reply.headers["RSP-Event-Id"]
    if found is None:
        raise ValueError("it is no Thalweg server")
    return str(found)


def _read(url: str, media: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": media}), timeout=_TIMEOUT_S) as reply:
        return str(reply.read().decode())


def misused(given: argparse.Namespace) -> str | None:
    """What is wrong with the options of a ``why`` of a program together."""
    if len(given.query) > 1 or not is_program(given.query[0]):
        return f"{given.query[0]} is a rule program: it is explained alone, not beside others."
    if given.fact is None:
        return "name the fact to prove with --fact, such as --fact 'P(a)@3'."
    wrong = [name for name, there in (
        ("--at", given.at is not None), ("--rules", given.rules), ("--name", given.name is not None), ("--row", given.row),
        ("--master", given.master),
        ("--result", given.result is not None), ("--mode", given.mode != "full"), ("--ceased", given.ceased)) if there]
    return f"{wrong[0]} goes with queries; of a rule program --fact says what is to be proved." if wrong else None


@told
def prove_fact(given: argparse.Namespace, out: TextIO) -> None:
    program, unit_ms, known = read_program(given)
    wanted = parse_facts(given.fact, unit_ms, known)
    if len(wanted) != 1:
        raise ValueError(f"--fact names {len(wanted)} facts, not one.")
    facts: list[Given] = [(fact, Filed(file.name)) for file in given.facts
                          for fact in read_facts(file, unit_ms, known, bool(program.granularity_ms))]
    facts += [(as_fact((TRIPLE, triple), point_of(t_ms)), Streamed(iri, (t_ms,)))
              for iri, triple, t_ms in streamed_triples(given.stream, program)]
    facts += [(as_fact((TRIPLE, triple), ALWAYS), Static(iri)) for iri, triple in static_triples(given.graph, program)]
    found = explained_fact(program, facts, wanted[0], "@" in given.fact, given.max)
    _show(found, program_as_text, given, out)


def explained_fact(program: RuleSet, facts: list[Given], wanted: Fact, timed: bool, most: int) -> dict[str, Any]:
    """At most `most` proofs of a fact; of one that is not `timed`, where it first holds. Times are in ms. Raises Problem, ValueError."""
    length = program.granularity_ms
    terms = tuple(term.token for term in wanted.atom.terms if isinstance(term, Constant))
    when = _granules(wanted.interval, 2 * length) if length else wanted.interval
    try:
        found = explain_fact(program, facts, (wanted.atom.predicate, terms), when if timed else None, most)
    except (TooMuchError, Unending) as error:
        raise Problem("not-explained", str(error)) from error
    if not found.proofs:
        raise ValueError(_does_not_hold(program, wanted, found, timed))
    return {"program": program.name, "unitMs": program.unit_ms, "granularityMs": length, **fact_json((wanted.atom.predicate, terms)),
            "during": times(found.during), "proofs": as_json(found.proofs, {program.name: program}, int), "more": found.more}


def _does_not_hold(program: RuleSet, wanted: Fact, found: Proved, timed: bool) -> str:
    """What to say of a fact that does not hold, and when it does."""
    unit_ms, length = program.granularity_ms or program.unit_ms, 2 * program.granularity_ms

    def shown(when: Interval) -> str:
        last = when.hi + 1 - length if length and when.hi != MAX else when.hi
        return print_facts([Fact(wanted.atom, Interval(when.lo, last))], unit_ms).rstrip()

    name = shown(ALWAYS).rpartition("@")[0]
    held = ", ".join(shown(when).rpartition("@")[2] for when in found.held)
    asked = print_facts([wanted], unit_ms).rstrip() if timed else name
    return f"{asked} does not hold. {f'{name} holds at {held}.' if held else f'{name} never does.'}"


def _granules(when: Interval, length: int) -> Interval:
    """All points of the granules that an interval meets."""
    return Interval(when.lo if when.lo == MIN else when.lo // length * length,
                    when.hi if when.hi == MAX else when.hi // length * length + length - 1)
