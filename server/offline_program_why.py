"""``thalweg why program.dmtl --facts FILE --fact 'P(a)@3'``: the proofs of a fact of a rule program with a time of its own."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from engine.ir.printer_facts import print_facts
from engine.ir.rules import TRIPLE, Atom, Fact, RuleSet
from engine.ir.strata import Unending
from engine.ir.terms import Constant
from engine.records import Triple
from engine.timeline import ALWAYS, MAX, MIN, Interval, instant
from engine.why.held import Given
from engine.why.programs import Proved, explain_fact
from engine.why.trees import Filed, Static, Streamed, TooMuchError
from grammar.rule_sets import TIMED_EXTENSIONS, parse_facts, parse_rules, prefixes_of
from server.formats.proof_text import program_as_text
from server.formats.proofs import as_json, fact_json, times
from server.offline import read_text, told
from server.offline_programs import is_program, read_facts, static_triples, streamed_triples
from server.problems import Problem, dumps


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


def prove_fact(given: argparse.Namespace, out: TextIO) -> int:
    """Prove a fact of a program; the exit status."""
    def work() -> None:
        [path] = given.query
        text, kind = read_text(path), TIMED_EXTENSIONS[path.suffix.lower()]
        program = parse_rules(text, kind, path.stem)
        unit_ms, known = program.granularity_ms or program.unit_ms, prefixes_of(text, kind)
        wanted = parse_facts(given.fact, unit_ms, known)
        if len(wanted) != 1:
            raise ValueError(f"--fact names {len(wanted)} facts, not one.")
        facts: list[Given] = [(fact, Filed(file.name)) for file in given.facts
                              for fact in read_facts(file, unit_ms, known, bool(program.granularity_ms))]
        facts += [(_fact(triple, Interval(instant(t_ms), instant(t_ms))), Streamed(iri, (t_ms,)))
                  for iri, triple, t_ms in streamed_triples(given.stream, program)]
        facts += [(_fact(triple, ALWAYS), Static(iri)) for iri, triple in static_triples(given.graph, program)]
        found = explained(program, facts, wanted[0], "@" in given.fact, given.max)
        print(program_as_text(found) if given.format == "text" else dumps(found).decode(), end="" if given.format == "text" else "\n",
              file=out)
    return told(work)


def explained(program: RuleSet, facts: list[Given], wanted: Fact, timed: bool, most: int) -> dict[str, Any]:
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
            "during": times(found.during, int), "proofs": as_json(found.proofs, {program.name: program}, int), "more": found.more}


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


def _fact(triple: Triple, when: Interval) -> Fact:
    return Fact(Atom(TRIPLE, tuple(map(Constant, triple))), when)
