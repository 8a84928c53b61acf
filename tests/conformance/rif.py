"""W3C's RIF test cases for Core: entailments, syntax tests and import rejections, in every folder of KINDS that is there.

Each document is read in both syntaxes, which must give the same rules. An entailment is evaluated by the oracle twice, on dense time with
all facts valid always and by the closure of graphs, and by the executor twice: its conclusion, as a rule that derives GOAL, stands beside
the rules that a query uses, and the graphs that it imports are a static graph or the content of a window. All must agree. One outcome
per case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from engine.ir.rules import OWL_DIRECT, OWL_RL, RANKS, TRIPLE, Atom, Fact, Formula, Import, Rule, RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.terms import Constant, Variable
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.reference.temporal import evaluate
from engine.rewrite.owl2rl import RULES_OF
from engine.timeline import ALWAYS
from grammar import parse
from grammar.rif.parse import REJECTED, strongest
from tests.conformance.executors import Answer
from tests.conformance.outcomes import Outcome, Verdict, refusal
from tests.conformance.readings import Question, Told, ask
from tests.conformance.rif_cases import Case, cases, read_graph, read_rules
from tests.rif_documents import graph_problems

GOAL: Triple = ("<urn:test:goal>", "<urn:test:is>", "<urn:test:reached>")
PRESENT: Triple = ("<urn:test:here>", "<urn:test:is>", "<urn:test:here>")
"""What is in a window where a case has no graph."""
REACHED = parse(f"ASK {{ {' '.join(GOAL)} }}")
DIRECT = ("its graph is imported under OWL-Direct, which is refused by name (RIF RDF and OWL Compatibility, section 3.2.2.2: OWL 2 DL "
          "needs more than rules); imported under OWL 2 RL, its conclusion follows")


T = TypeVar("T")


class Differs(Exception):
    """Two things that must be the same are not; the message says which."""


@dataclass(frozen=True, slots=True)
class Premise:
    """Rules, linked, with those of the profile of what they import, and the triples of that; `direct`: OWL-Direct is read as OWL 2 RL."""

    program: RuleSet
    triples: tuple[Triple, ...]
    profile: str | None
    direct: bool


@dataclass(frozen=True, slots=True)
class Entailment:
    """A case that asks whether GOAL follows from a program and triples."""

    case: Case
    program: RuleSet
    premise: Premise

    @property
    def question(self) -> Question:
        """What the executor is asked."""
        return Question(REACHED, self.premise.triples or (PRESENT,), (), self.program)


def run(folder: Path, answer: Answer, only: str = "") -> Iterator[Outcome]:
    """One outcome per case, kind by kind."""
    judges = {"PositiveSyntaxTest": _accepted, "NegativeSyntaxTest": _refused, "ImportRejectionTest": _rejected}
    found = {case.name: _tried(judges.get(case.kind, entailment), case) for case in cases(folder, only)}
    entailments = {name: one for name, one in found.items() if isinstance(one, Entailment)}
    told = ask(answer, {name: one.question for name, one in entailments.items()})
    for name, one in found.items():
        yield _tried(partial(_entailed, one, told[name]), one.case) if isinstance(one, Entailment) else one


def _tried(judge: Callable[[Case], T], case: Case) -> T | Outcome:
    try:
        return judge(case)
    except DiagnosticError as error:
        return Outcome(case.name, Verdict.FAILED, refusal(error))
    except (Differs, FileNotFoundError) as error:
        return Outcome(case.name, Verdict.FAILED, str(error))


def _passed(case: Case, wrong: str | None) -> Outcome:
    return Outcome(case.name, Verdict.FAILED if wrong else Verdict.PASSED, wrong or "")


# ---------------------------------------------------------------------- syntax and imports


def _accepted(case: Case) -> Outcome:
    return _passed(case, None if _one([read_rules(path) for path in case.files("input")]) else "it has no document")


def _refused(case: Case) -> Outcome:
    """Each syntax must be refused, at a place."""
    files = case.files("input")
    for path in files:
        try:
            read_rules(path)
        except DiagnosticError as error:
            if any(d.span is None for d in error.diagnostics):
                return _passed(case, f"{path.name}: {refusal(error)} (without a position)")
        else:
            return _passed(case, f"{path.name}: accepted, must be refused")
    return _passed(case, None if files else "it has no document")


def _rejected(case: Case) -> Outcome:
    """A document that may be read by itself, but not together with what it imports."""
    files = case.files("input")
    for path in files:
        try:
            rules = case.linked(read_rules(path))
            problems = _problems(case.graphs(rules))
        except DiagnosticError:
            continue
        if not problems:
            return _passed(case, f"{path.name}: accepted, must be rejected")
    return _passed(case, None if files else "it has no document")


def _problems(graphs: Mapping[Import, tuple[Triple, ...]]) -> list[str]:
    return [problem.message for imp, triples in graphs.items()
            for problem in graph_problems((token for triple in triples for token in triple), imp)]


def _one(documents: Sequence[T]) -> T | None:
    """What both syntaxes say; None where there is neither. Raises Differs."""
    first, *others = documents or (None,)
    if any(other != first for other in others):
        raise Differs("RIF/XML and presentation syntax give different rules")
    return first


# ---------------------------------------------------------------------- entailments


def premise(case: Case) -> Premise:
    """What the conclusion is to follow from. Raises DiagnosticError, Differs, FileNotFoundError."""
    direct = False
    try:
        rules = _one([read_rules(path) for path in case.files("premise")])
    except DiagnosticError as error:
        if {d.code for d in error.diagnostics} != {REJECTED} or "OWL-Direct" not in str(error):
            raise
        direct, rules = True, _one([read_rules(path, {OWL_DIRECT: OWL_RL}) for path in case.files("premise")])
    if rules is None:
        raise Differs("it has no premise")
    rules = case.linked(rules)
    graphs = case.graphs(rules)
    if problems := _problems(graphs):
        raise Differs("; ".join(problems))
    profile = strongest(rules.imports)
    program = replace(rules, rules=(*rules.rules, *(RULES_OF[profile].rules if profile else ())), imports=())
    return Premise(program, tuple(dict.fromkeys(triple for graph in graphs.values() for triple in graph)), profile, direct)


def entailment(case: Case) -> Entailment:
    """A case of entailment, its conclusion made rules."""
    goals, found = _goals(case, "conclusion" if _positive(case) else "nonconclusion"), premise(case)
    head = Atom(TRIPLE, tuple(map(Constant, GOAL)))
    return Entailment(case, replace(found.program, rules=(*found.program.rules, *(Rule(head, body) for body in goals))), found)


def _positive(case: Case) -> bool:
    return case.kind == "PositiveEntailmentTest"


def _entailed(asked: Entailment, told: Told | str, case: Case) -> Outcome:
    if isinstance(told, str):
        return _passed(case, told)
    for reading, follows in {"the oracle": _follows(asked), **{r: e.result.boolean for r, e in told.items()}}.items():
        if follows is not _positive(case):
            return _passed(case, f"{reading}: the conclusion {'follows' if follows else 'does not follow'}")
    return Outcome(case.name, Verdict.SKIPPED, DIRECT) if asked.premise.direct else _passed(case, None)


def _goals(case: Case, role: str) -> tuple[tuple[Formula, ...], ...]:
    """The conclusion as bodies: a condition, or a graph whose blank nodes are variables."""
    graph = case.file(role, ".ttl", ".rdf")
    if graph is not None:
        return (tuple(Atom(TRIPLE, (_asked(s), _asked(p), _asked(o))) for s, p, o in read_graph(graph)),)
    found = _one(case.conclusions(role))
    if found is None:
        raise Differs(f"it has no {role}")
    return found


def _asked(token: str) -> Variable | Constant:
    return Variable(token) if token.startswith("_:") else Constant(token)


def _follows(asked: Entailment) -> bool:
    """Whether GOAL follows. Raises Differs where the two evaluations of the oracle do not agree."""
    triples, profile = asked.premise.triples, asked.premise.profile
    found, _ = closure(Graph(triples), asked.program)
    follows = GOAL in found.triples
    if profile is None or RANKS[profile] < RANKS[OWL_RL]:   # on dense time, OWL's rules would take minutes
        model = evaluate(asked.program, [Fact(Atom(TRIPLE, tuple(map(Constant, triple))), ALWAYS) for triple in triples])
        if model.facts.get((TRIPLE, GOAL)) != ((ALWAYS,) if follows else None):
            raise Differs("the closure of graphs and the evaluation on dense time do not agree")
    return follows
