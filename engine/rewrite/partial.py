"""Partial evaluation of entailment rules against a schema: what a body asks of the schema becomes a table of constants.

``?x a ?d <- ?c rdfs:subClassOf ?d, ?x a ?c`` and a schema of two axioms give ``?x a ?d <- (?c ?d) in {...}, ?x a ?c``: at most one
rule for each of the W3C's (and length of list), with atoms about data, tests, and one table. The schema is closed before, so that a
chain in a hierarchy takes one step.

>>> from engine.ir.rule_printer import show_rule
>>> from engine.rewrite.owl2rl import RDFS
>>> sub = iri("rdfs:subClassOf")
>>> for rule in compile_rules(RDFS, [("<Cat>", sub, "<Felid>"), ("<Felid>", sub, "<Animal>")]).rules:
...     print(show_rule(rule, str))
rdfs9: [?x a ?d] <- (?c ?d) in {(<Cat> <Animal>) (<Cat> <Felid>) (<Felid> <Animal>)}, [?x a ?c] .  # rdfs9

What counts as schema is `schema.schema_vocabulary`. Statements of schema that follow from data only are data to the result: rules
for schemas that come with the data are the ones that are not partially evaluated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from engine.ir.expressions import variables_of
from engine.ir.rules import TRIPLE, Assign, Atom, Fact, Formula, Rule, RuleSet, Table, Test, rule_variables
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.records import Triple
from engine.rewrite.relations import Row, Store
from engine.rewrite.rule_text import iri
from engine.rewrite.saturate import saturate, solutions
from engine.rewrite.schema import CLASSES, FIRST, PREDICATES, REST, members_of_lists, schema_vocabulary
from engine.timeline import ALWAYS

_STATIC_LISTS = ("list-member", "list-pair")
_BY_LENGTH = ("list-types", "list-path", "list-agree")
_ABOUT_DATA = frozenset(("eq-ref",))
"""Rules that tell nothing new of a schema: its nodes are equal to themselves once it is data, too."""
_BY_MENTION = frozenset(("dt-type2",))
"""Rules that derive only what a rule with the same class in its table asks for."""


def compile_rules(rules: RuleSet, tbox: Iterable[Triple]) -> RuleSet:
    """The rules, partially evaluated. `tbox` may have data as well, which is passed over.

    `facts` are what follows from the schema alone and is not in it; among them may be triples that are not RDF (of a literal), which
    other rules need and no answer shows. A graph's closure is that of graph and facts under the result.
    """
    schema = schema_vocabulary(tbox)
    lists = members_of_lists(schema)
    given = Store(schema)
    _add_lists(given, lists, schema)
    closed = saturate(given, (r for r in rules.rules if r.name not in _ABOUT_DATA and not _is_of_lists(r)))
    mentioned = frozenset(token for s, _, o in schema for token in (s, o))
    compiled: dict[object, set[Row]] = defaultdict(set)
    found = [made for rule in rules.rules if not _is_of_lists(rule)
             for expanded in _by_length(rule, lists) for made in _compiled(expanded, closed, mentioned, compiled)]
    facts = sorted(triple for triple in closed.triples() if triple not in schema)
    return replace(rules, rules=tuple(found), facts=rules.facts + tuple(
        Fact(Atom(TRIPLE, tuple(map(Constant, triple))), ALWAYS) for triple in facts))


def _add_lists(store: Store, lists: Mapping[str, list[Row]], schema: Iterable[Triple]) -> None:
    """Members, pairs of those lists that say that their members differ, and each list as a fact of its length."""
    differing = {o for _, p, o in schema if p in (iri("members"), iri("distinctMembers"))}
    for head, sequences in lists.items():
        for members in sequences:
            store.add((_STATIC_LISTS[0], False), ((head, member) for member in members))
            store.add((f"list-{len(members)}", False), [(head, *members)])
            if head in differing:
                store.add((_STATIC_LISTS[1], False), ((head, *pair) for pair in combinations(members, 2)))


def _by_length(rule: Rule, lists: Mapping[str, list[Row]]) -> Iterator[Rule]:
    """A rule about all members of a list: one for each length, with the members as variables."""
    asked = next((part for part in rule.body if isinstance(part, Atom) and part.predicate in _BY_LENGTH), None)
    if asked is None:
        yield rule
        return
    rest = tuple(part for part in rule.body if part is not asked)
    for length in sorted({len(members) for sequences in lists.values() for members in sequences}):
        members = tuple(Variable(f"m{number}") for number in range(1, length + 1))
        listed = Atom(f"list-{length}", (asked.terms[0], *members))
        yield replace(rule, body=(*rest, listed, *_about_members(asked, members)))


def _about_members(asked: Atom, members: tuple[Variable, ...]) -> Iterator[Atom]:
    one, other = asked.terms[1], asked.terms[-1]
    steps = (one, *(Variable(f"w{number}") for number in range(1, len(members))), other)
    for number, member in enumerate(members):
        match asked.predicate:
            case "list-types":
                yield Atom(TRIPLE, (one, Constant(RDF_TYPE), member))
            case "list-path":
                yield Atom(TRIPLE, (steps[number], member, steps[number + 1]))
            case "list-agree":
                shared = Variable(f"z{number + 1}")
                yield from (Atom(TRIPLE, (term, member, shared)) for term in (one, other))


def _compiled(rule: Rule, closed: Store, mentioned: frozenset[str], earlier: dict[object, set[Row]]) -> Iterator[Rule]:
    """The rule with its table, less the rows that an earlier rule of the same shape has, or none."""
    static = [part for part in rule.body if _is_static(part)]
    asked = {v for part in static for v in rule_variables(part)}
    static += [part for part in rule.body if isinstance(part, Table) and asked.intersection(part.variables)]
    data = [part for part in rule.body if part not in static]
    if not any(isinstance(part, Atom) for part in data):
        return
    if not static:
        yield from _restricted(rule, mentioned) if rule.name in _BY_MENTION else (rule,)
        return
    used = {v for part in (rule.head, *data) for v in _variables(part)}
    columns = tuple(sorted(asked & used))
    rows = solutions(static, [], closed).projected(columns)
    rows -= {row for row in rows if any(_says_its_head(rule, part, dict(zip(columns, row))) for part in data)}
    shape, order = _shape(rule, data, columns)
    known = earlier[shape]
    kept = [row for row in rows if tuple(row[place] for place in order) not in known]
    known.update(tuple(row[place] for place in order) for row in kept)
    if kept:
        constants: dict[str, Constant] = {token: Constant(token) for row in kept for token in row}
        table = Table(columns, tuple(tuple(map(constants.__getitem__, row)) for row in sorted(kept)))
        yield replace(rule, body=(table, *data) if columns else tuple(data))


def _is_static(part: Formula) -> bool:
    if not isinstance(part, Atom):
        return False
    if part.predicate != TRIPLE:
        return part.predicate in _STATIC_LISTS or part.predicate.removeprefix("list-").isdigit()
    _, link, object_ = part.terms
    if link == Constant(RDF_TYPE):
        return isinstance(object_, Constant) and object_.token in CLASSES
    return isinstance(link, Constant) and link.token in PREDICATES | {FIRST, REST}


def _is_of_lists(rule: Rule) -> bool:
    """Whether a rule only says what the atoms about lists mean."""
    return isinstance(rule.head, Atom) and rule.head.predicate in _STATIC_LISTS + _BY_LENGTH


def _restricted(rule: Rule, mentioned: frozenset[str]) -> Iterator[Rule]:
    """The rule with those rows of its table that the schema speaks of, or none."""
    table = next(part for part in rule.body if isinstance(part, Table))
    rows = tuple(row for row in table.rows if mentioned.issuperset(cell.token for cell in row))
    if rows:
        yield replace(rule, body=tuple(replace(table, rows=rows) if part is table else part for part in rule.body))


def _says_its_head(rule: Rule, part: Formula, row: Mapping[Variable, str]) -> bool:
    """Whether a part of the body is the head, the table's row put in."""
    if not isinstance(rule.head, Atom) or not isinstance(part, Atom) or part.predicate != rule.head.predicate:
        return False
    return all(a == b or _put(a, row) == _put(b, row) for a, b in zip(part.terms, rule.head.terms))


def _put(term: Term, row: Mapping[Variable, str]) -> str | Variable:
    return term.token if isinstance(term, Constant) else row.get(term, term)


def _variables(part: object) -> Iterator[Variable]:
    if isinstance(part, (Test, Assign)):
        yield from variables_of(part.condition if isinstance(part, Test) else part.expression)
    elif isinstance(part, (Atom, Table)):
        yield from rule_variables(part)


def _shape(rule: Rule, data: Sequence[Formula], columns: Sequence[Variable]) -> tuple[object, list[int]]:
    """What a rule is but for its table and the names of its variables, and the order in which its columns come up."""
    names: dict[Variable, str] = {}
    parts: list[object] = [type(rule.head).__name__]
    for part in (rule.head, *data):
        if isinstance(part, Atom):
            parts.append((part.predicate, *(t if isinstance(t, Constant) else (names.setdefault(t, f"v{len(names)}"), t in columns)
                                            for t in part.terms)))
    for part in data:
        if not isinstance(part, Atom):
            shown = repr(part)
            for variable in sorted(_variables(part)):
                shown = shown.replace(repr(variable), names.get(variable, variable.name))
            parts.append(shown)
    return tuple(parts), [columns.index(v) for v in names if v in columns]
