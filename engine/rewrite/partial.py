"""Partial evaluation of entailment rules against a schema: what a body asks of the schema becomes a table of constants.

``?x a ?d <- ?c rdfs:subClassOf ?d, ?x a ?c`` and a schema of two axioms give ``?x a ?d <- (?c ?d) in {...}, ?x a ?c``: at most one
rule for each of the W3C's (and length of list), with atoms about data, tests, and one table. The schema is closed before, so that a
chain in a hierarchy takes one step.

>>> from engine.ir.notation import show_rule
>>> from engine.rewrite.owl2rl import RDFS
>>> sub = iri("rdfs:subClassOf")
>>> for rule in compile_rules(RDFS, [("<Cat>", sub, "<Felid>"), ("<Felid>", sub, "<Animal>")]).rules:
...     print(show_rule(rule, str))
rdfs9: [?x a ?d] <- (?c ?d) in {(<Cat> <Animal>) (<Cat> <Felid>) (<Felid> <Animal>)}, [?x a ?c] .  # rdfs9

What counts as schema is `schema.schema_vocabulary`. Statements of schema that follow from data only are data to the result: rules
for schemas that come with the data are the ones that are not partially evaluated.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import merge
from itertools import combinations

from engine.facts import pieces
from engine.ir.rules import TRIPLE, Assign, Atom, Fact, Falsum, Formula, Head, Rule, RuleSet, Table, Test, rule_variables, variables_in
from engine.ir.substitution import mapped
from engine.ir.terms import RDF_TYPE, Constant, Term, Variable
from engine.records import Triple
from engine.rewrite.rule_text import iri
from engine.rewrite.saturate import Row, Store, getter, is_static, saturate, solutions
from engine.rewrite.schema import CLASSES, FIRST, PREDICATES, REST, members_of_lists, schema_vocabulary
from engine.timeline import ALWAYS

_STATIC_LISTS = ("list-member", "list-pair")
BY_LENGTH = ("list-types", "list-path", "list-agree")
"""Atoms about all members of a list."""
_HIERARCHIES = frozenset(("cax-sco", "prp-spo1"))
"""Rules that come first: others have the same shape, and leave out the rows that these have."""
_ABOUT_DATA = frozenset(("eq-ref",))
"""Rules that tell nothing new of a schema: its nodes are equal to themselves once it is data, too."""
_BY_MENTION = frozenset(("dt-type2",))
"""Rules that derive only what a rule with the same class in its table asks for."""


def compile_rules(rules: RuleSet, tbox: Iterable[Triple]) -> RuleSet:
    """The rules, partially evaluated. `tbox` may have data as well, which is passed over. `facts` are what follows from the schema alone
    and is not in it; among them may be triples that are not RDF (of a literal), which other rules need and no answer shows. A graph's
    closure is that of graph and facts under the result."""
    schema = schema_vocabulary(tbox)
    lists = members_of_lists(schema)
    given = Store(schema)
    _add_lists(given, lists, schema)
    closed = saturate(given, (r for r in rules.rules if not r.is_built_in(*_ABOUT_DATA) and not _is_of_lists(r)))
    mentioned = frozenset(token for s, _, o in schema for token in (s, o))
    compiled: dict[object, set[Row]] = defaultdict(set)
    found = [made for rule in sorted(rules.rules, key=lambda r: not r.is_built_in(*_HIERARCHIES)) if not _is_of_lists(rule)
             for expanded in _by_length(rule, lists) for made in _compiled(expanded, closed, mentioned, compiled)]
    facts = _in_order(triple for triple in closed.triples() if triple not in schema)
    return replace(rules, rules=tuple(found), facts=rules.facts + tuple(
        Fact(Atom(TRIPLE, tuple(map(_constant, triple))), ALWAYS) for triple in facts))


def _in_order(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows sorted, in pieces that are merged."""
    return merge(*map(sorted, pieces(rows)))


@lru_cache(maxsize=1 << 18)
def _constant(token: str) -> Constant:
    """One object for each token: tables of hierarchies name their classes again and again."""
    return Constant(token)


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
    asked = next((part for part in rule.body if isinstance(part, Atom) and part.predicate in BY_LENGTH), None)
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
    static = [part for part in rule.body if is_about_schema(part)]
    asked = {v for part in static for v in rule_variables(part)}
    static += [part for part in rule.body if isinstance(part, Table) and asked.intersection(part.variables)]
    data = [part for part in rule.body if part not in static]
    if is_static(rule) and not any(isinstance(part, Atom) for part in data):
        return
    if not static:
        yield from _restricted(rule, mentioned) if rule.is_built_in(*_BY_MENTION) else (rule,)
        return
    order, shape = _shape(rule, data, asked)
    columns = tuple(v for v in order if v in asked)
    rows = solutions(static, [], closed).projected(columns)
    for part in data:
        rows = _without_its_head(rule.head, part, columns, rows)
    kept = rows - earlier[shape]
    earlier[shape] |= kept
    if kept:
        table = Table(columns, tuple(tuple(map(_constant, row)) for row in _in_order(kept)))
        yield replace(rule, body=(table, *data) if columns else tuple(data))


def is_about_schema(part: Formula) -> bool:
    """Whether a part of a body is matched in the schema."""
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
    return isinstance(rule.head, Atom) and rule.head.predicate in _STATIC_LISTS + BY_LENGTH


def _restricted(rule: Rule, mentioned: frozenset[str]) -> Iterator[Rule]:
    """The rule with those rows of its table that the schema speaks of, or none."""
    table = next(part for part in rule.body if isinstance(part, Table))
    rows = tuple(row for row in table.rows if mentioned.issuperset(cell.token for cell in row))
    if rows:
        yield replace(rule, body=tuple(replace(table, rows=rows) if part is table else part for part in rule.body))


def _without_its_head(head: Head, part: Formula, columns: tuple[Variable, ...], rows: set[Row]) -> set[Row]:
    """The rows that do not make a part of the body the same as the head."""
    if not isinstance(head, Atom) or not isinstance(part, Atom) or part.predicate != head.predicate:
        return rows
    differing = [pair for pair in zip(part.terms, head.terms) if pair[0] != pair[1]]
    if any(isinstance(term, Variable) and term not in columns for pair in differing for term in pair):
        return rows
    pairs = [(getter(a, columns), getter(b, columns)) for a, b in differing]
    return {row for row in rows if any(a(row) != b(row) for a, b in pairs)}


def _shape(rule: Rule, data: Sequence[Formula], asked: Collection[Variable]) -> tuple[tuple[Variable, ...], object]:
    """The variables of a rule in the order in which they come up, and what it is but for their names and its table."""
    parts: list[Formula | Head] = sorted((*data, rule.head), key=lambda part: not isinstance(part, Atom))
    order = tuple(dict.fromkeys(v for part in parts for v in variables_in(part)))
    if rule.window_ms is not None or not all(isinstance(part, (Atom, Falsum, Test, Assign, Table)) for part in parts):
        return order, object()  # of its own: it speaks of time, or of what is not
    number: dict[Term, Term] = {v: Variable(f"v{place}{'*' if v in asked else ''}") for place, v in enumerate(order)}
    own = (rule.role, rule.name) if isinstance(rule.head, Falsum) else ()   # an inconsistency says by which rule
    return order, (*(mapped(part, lambda term: number.get(term, term)) for part in parts), *own)
