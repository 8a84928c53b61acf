"""``thalweg run`` of rule programs with a time of their own, over recorded facts, in this process."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import orjson

from engine.ir.printer_facts import print_facts
from engine.ir.rules import STREAM, Fact, RuleSet, atoms
from engine.ir.spans import DiagnosticError
from engine.ir.terms import Constant
from engine.records import Triple
from engine.runtime.programs import Derived, as_given, explain, heads, run
from engine.runtime.rows import own_blank_nodes, short_name
from engine.timeline import Interval
from grammar.rule_sets import TIMED_EXTENSIONS, parse_facts, parse_rules, prefixes_of
from server.formats.values import times
from server.offline import in_file, named_file, read_background, read_stream, read_text, told
from server.problems import from_diagnostics

FORMATS = ("jsonl", "facts")
_NAMES = re.compile(r"<[^>]*>|[^,\s]+")


def is_program(path: Path) -> bool:
    """Whether a file is a rule program with a time of its own, by the end of its name."""
    return path.suffix.lower() in TIMED_EXTENSIONS


def misused(given: argparse.Namespace) -> str | None:
    """What is wrong with the options of a ``run`` together."""
    programs = [path for path in given.query if is_program(path)]
    if not programs:
        wrong = [name for name, there in (("--facts", bool(given.facts)), ("--derived", given.derived is not None),
                                          ("--until", given.until is not None), ("--format facts", given.format == "facts")) if there]
        known = ", ".join(TIMED_EXTENSIONS)
        return f"{wrong[0]} goes with a rule program ({known}), and here is a query." if wrong else None
    if len(given.query) > 1:
        return f"{programs[0]} is a rule program: it runs alone, not beside other programs or queries."
    if given.rules:
        return "--rules goes with queries; a rule program has its rules in its text."
    if given.master:
        return "--master goes with queries; a rule program is evaluated in this process."
    if given.format not in FORMATS:
        return f"--format {given.format} goes with queries; a rule program has {' and '.join(FORMATS)}."
    if given.explain not in (None, "logical"):
        return f"--explain {given.explain} goes with queries; a rule program has logical."
    return None


@told
def run_program(given: argparse.Namespace, out: TextIO) -> None:
    program, unit_ms, known = read_program(given)
    names = None if given.derived is None else _wanted(given.derived, program)
    if given.explain:
        out.write(explain(program))
        return
    facts = [fact for file in given.facts for fact in read_facts(file, unit_ms, known, bool(program.granularity_ms))]
    for warning in _unread(facts, program):
        print(f"warning: {warning}", file=sys.stderr)
    streamed = [(triple, t_ms) for _, triple, t_ms in streamed_triples(given.stream, program)]
    static = [triple for _, triple in static_triples(given.graph, program)]
    found = run(program, as_given(facts, streamed, static), given.until, names)
    if found.cut:
        last = f"{found.of.hi / 2 / unit_ms:.15g}" + ("" if unit_ms == 1 else f" ({found.of.hi / 2:.15g} ms)")
        print(f"warning: The rules go on deriving for ever: what is shown ends with the facts, at {last}. --until TIME shows more.",
              file=sys.stderr)
    out.write(print_facts(_shown(found, program), unit_ms) if given.format == "facts" else _as_json(found))


def read_program(given: argparse.Namespace) -> tuple[RuleSet, int, dict[str, str]]:
    """The one program that the arguments name, its unit or granularity in ms, and the prefixes that it declares."""
    [path] = given.query
    text, kind = read_text(path), TIMED_EXTENSIONS[path.suffix.lower()]
    program = parse_rules(text, kind, path.stem)
    return program, program.granularity_ms or program.unit_ms, prefixes_of(text, kind)


def _wanted(text: str, program: RuleSet) -> set[str]:
    """The names of ``--derived``; an IRI may stand without its brackets."""
    known = heads(program)
    names = {name if name in known else f"<{name}>" if f"<{name}>" in known else name for name in _NAMES.findall(text)}
    if unknown := sorted(names - set(known)):
        raise ValueError(f"--derived: no rule derives {', '.join(unknown)}; there are {', '.join(known) or 'none'}.")
    if not names:
        raise ValueError(f"--derived names no predicate; there are {', '.join(known) or 'none'}.")
    return names


def _unread(facts: Iterable[Fact], program: RuleSet) -> Iterator[str]:
    """What to say of facts that no rule reads, since the rules have their predicate with other numbers of terms."""
    known: dict[str, set[int]] = {}
    for rule in program.rules:
        for atom in (atom for part in (rule.head, *rule.body) for atom in atoms(part)):
            known.setdefault(atom.predicate, set()).add(len(atom.terms))
    given = dict.fromkeys((fact.atom.predicate, len(fact.atom.terms)) for fact in (*program.facts, *facts))
    for predicate, count in given:
        if predicate in known and count not in known[predicate]:
            wanted = " or ".join(map(str, sorted(known[predicate])))
            yield f"No rule reads the facts of {predicate} with {count} terms; the rules have it with {wanted}."


def read_facts(path: Path, unit_ms: int, prefixes: dict[str, str], granules: bool = False) -> list[Fact]:
    """The facts of a file, in units of `unit_ms`, which are `granules` or not. Raises Problem."""
    try:
        return parse_facts(read_text(path), unit_ms, prefixes, granules=granules)
    except DiagnosticError as error:
        raise in_file(from_diagnostics(error), path) from error


def streamed_triples(given: Iterable[str], program: RuleSet) -> Iterator[tuple[str, Triple, int]]:
    """The triples of recorded streams: the stream's IRI, and the time stamp of the item in ms."""
    for number, (iri, path) in enumerate(_files("--stream", given, [i.iri for i in program.imports if i.profile == STREAM])):
        for place, item in enumerate(read_stream(path)):
            mark = f"s{number}.{place}" if item.scope_ms is None else f"s{number}.t{item.scope_ms}"
            yield from ((iri, triple, item.t_ms or 0) for triple in own_blank_nodes(item.triples, mark))


def static_triples(given: Iterable[str], program: RuleSet) -> Iterator[tuple[str, Triple]]:
    """The triples of static graphs, each with the graph's IRI."""
    for iri, path in _files("--graph", given, [i.iri for i in program.imports if i.profile != STREAM]):
        yield from ((iri, triple) for triple in own_blank_nodes(read_background(path), f"g{short_name(path.resolve().as_uri())}"))


def _files(option: str, given: Iterable[str], named: Sequence[str]) -> list[tuple[str, Path]]:
    """The files of an option, each with the source that it is: one that the program names, the only one, or the file's own address."""
    found = []
    for text in given:
        iri, path = named_file(text)
        if iri is not None and iri not in named:
            raise ValueError(f"{option} {text}: the program does not name this source; it names {', '.join(named) or 'none'}.")
        found.append((iri or (named[0] if len(named) == 1 else path.resolve().as_uri()), path))
    return found


def _shown(found: Derived, program: RuleSet) -> list[Fact]:
    """The facts; on a timeline of granules from the first one of each to its last: ``[2,4]``, and not ``[2,5)``."""
    length = 2 * program.granularity_ms
    return [Fact(f.atom, Interval(f.interval.lo, f.interval.hi + 1 - length)) if length else f for f in found.facts]


def _as_json(found: Derived) -> str:
    """One object a line: predicate, terms as N-Triples has them, and when it holds in ms, null for no end."""
    lines = []
    for atom, intervals in sorted(found.held.items(), key=lambda pair: (pair[0].predicate, *map(str, pair[0].terms))):
        terms = [term.token for term in atom.terms if isinstance(term, Constant)]
        lines += [orjson.dumps({"predicate": atom.predicate, "terms": terms, **times(when)}).decode() + "\n" for when in intervals]
    return "".join(lines)
