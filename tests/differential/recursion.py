"""Random short streams through recursive rules: programs, queries over their windows, and what comes when, from any source of random
numbers (Hypothesis's shrinks them).

A scenario is a small input log. Facts come several times, leave by several windows, and derive each other in rings; a graph or a rule
set may be replaced between two items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from engine.ir import rules
from engine.records import End, Event, GraphVersion, Record, Register, RulesVersion, Triple
from grammar.rule_sets import media_of
from tests.case_rows import PREFIXES
from tests.merged import SPACE

RIF = "text/x-rif-ps"
STREAM, GRAPH = f"{SPACE}s", f"{SPACE}known"
HEAD = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in (PREFIXES | {"owl": "http://www.w3.org/2002/07/owl#"}).items())
OWL, TYPE = "<http://www.w3.org/2002/07/owl#{}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LATENESS_MS = 2000
CHANGE_AT = 5   # the same place everywhere: each change is a barrier, and whatever is due before it is a job of its own on Spark
QUERY = "q"


@dataclass(frozen=True, slots=True)
class Program:
    """Rules, with what the stream says and what is asked. `rules` are the bodies of documents in RIF: the second one replaces the first;
    none means `owl2rl`. `schema` is told by a static graph, `facts` are further triples that this may hold."""

    rules: tuple[str, ...]
    schema: tuple[Triple, ...]
    facts: Callable[[Random], Triple]
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """What tests.merged asks of a case. `items` are (ms, triples) by time; after so many of them the graph and the rules `change`."""

    name: str
    program: Program
    query: str
    known: tuple[Triple, ...]
    items: tuple[tuple[int, tuple[Triple, ...]], ...]
    change: int | None

    def __repr__(self) -> str:
        told = [f"known: {' '.join(fact)}" for fact in self.known]
        told += [f"{t} {' , '.join(map(' '.join, triples))}" for t, triples in self.items]
        return "\n".join([f"{self.name} (change after {self.change})", *self.program.rules, self.query.removeprefix(HEAD), *told])

    @property
    def queries(self) -> dict[str, str]:
        """The one query."""
        return {QUERY: self.query}

    @property
    def streams_of_results(self) -> list[str]:
        """Its id; a rule program as a query has a second stream."""
        return [QUERY, f"{QUERY}/n"] if media_of(self.query) else [QUERY]

    def records(self, shuffle: int | None = None) -> list[Record]:
        """The input log; with `shuffle` items come up to LATENESS_MS after their turn, none of them late."""
        return list(self._records(None if shuffle is None else Random(shuffle)))

    def _records(self, rng: Random | None) -> Iterator[Record]:
        yield from self._versions(1, 0)
        yield Register(3, QUERY, self.query, 3)
        delay = {n: rng.randrange(LATENESS_MS) if rng else 0 for n in range(len(self.items))}
        arrivals = sorted(range(len(self.items)), key=lambda n: self.items[n][0] + delay[n])
        position, watermark = 3, -1 << 60
        for place, n in enumerate(arrivals):
            if place == self.change:
                yield from self._versions(position + 1, 1)
                position += 2
            position += 1
            t, triples = self.items[n]
            watermark = max(watermark, t - LATENESS_MS)
            yield Event(position, STREAM, t, None, triples, watermark)
        yield End(position + 1)

    def _versions(self, position: int, version: int) -> Iterator[Record]:
        known = self.known[version:]     # what is known changes by its first fact
        yield GraphVersion(position, GRAPH, (*self.program.schema, *known))
        text = self.program.rules[min(version, len(self.program.rules) - 1)] if self.program.rules else ""
        yield RulesVersion(position + 1, "mine", RIF, f"Document(Prefix(ex <{SPACE}>) Group({text}))")


NODES = [f"<{SPACE}{name}>" for name in "abcde"]


def facts(*kinds: tuple[str, Sequence[str]]) -> Callable[[Random], Triple]:
    """A triple of one of these properties and its values, between few nodes."""
    def fact(random: Random) -> Triple:
        property_, values = random.choice(kinds)
        return random.choice(NODES), property_ if property_.startswith("<") else f"<{SPACE}{property_}>", random.choice(values)
    return fact


def _typed(property_: str, *kinds: str) -> tuple[Triple, ...]:
    return tuple((f"<{SPACE}{property_}>", TYPE, OWL.format(kind)) for kind in kinds)


def _reach(step: str) -> str:
    return f"Forall ?x ?y (?x[ex:reaches -> ?y] :- ?x[ex:edge -> ?y]) Forall ?x ?y ?z (?x[ex:reaches -> ?z] :- {step})"


REACHED = ("?x :reaches ?y", ":a :reaches ?y", "?x :reaches :b", "?x :reaches ?x", "?x :reaches ?y . ?y :edge ?z",
           "?x :edge ?y FILTER NOT EXISTS { ?y :reaches ?x }", "?x :edge ?y OPTIONAL { ?y :reaches ?z FILTER(?z != ?x) }")
LEFT = _reach("And(?x[ex:reaches -> ?y] ?y[ex:edge -> ?z])")
RIGHT = _reach("And(?x[ex:edge -> ?y] ?y[ex:reaches -> ?z])")
BOTH = _reach("And(?x[ex:reaches -> ?y] ?y[ex:reaches -> ?z])")
ITSELF = "Forall ?x ?y ?z (?x[ex:edge -> ?z] :- And(?x[ex:edge -> ?y] ?y[ex:edge -> ?z]))"
MUTUAL = """
Forall ?x ?y (?x[ex:odd -> ?y] :- ?x[ex:edge -> ?y])
Forall ?x ?y ?z (?x[ex:even -> ?z] :- And(?x[ex:odd -> ?y] ?y[ex:edge -> ?z]))
Forall ?x ?y ?z (?x[ex:odd -> ?z] :- And(?x[ex:even -> ?y] ?y[ex:edge -> ?z]))"""
ALARM = """
Forall ?x (ex:hot(?x) :- ?x[ex:state -> "on"])
Forall ?x ?y (ex:warm(?y ?x) :- And(ex:hot(?x) ?x[ex:edge -> ?y]))
Forall ?x ?y (ex:hot(?y) :- And(ex:warm(?y ?x) ?y[ex:state -> "low"]))
Forall ?x (?x[ex:is -> "hot"] :- ex:hot(?x))
Forall ?x ?y (?x[ex:warms -> ?y] :- ex:warm(?y ?x))"""
GENERATION = """
Forall ?x ?y ?p (?x[ex:same -> ?y] :- And(?x[ex:edge -> ?p] ?y[ex:edge -> ?p]))
Forall ?x ?y ?p ?q (?x[ex:same -> ?y] :- And(?x[ex:edge -> ?p] ?p[ex:same -> ?q] ?y[ex:edge -> ?q]))"""
DISTANCE = """
Forall ?x (ex:away(?x 0) :- ?x[ex:state -> "on"])
Forall ?x ?y ?n (ex:away(?y External(func:numeric-add(?n 1))) :-
  And(ex:away(?x ?n) ?x[ex:edge -> ?y] External(pred:numeric-less-than(?n 3))))
Forall ?x ?n (?x[ex:steps -> ?n] :- ex:away(?x ?n))"""
NEAR = """
Forall ?x ?y (?y[ex:near -> ?x] :- ?x[ex:near -> ?y])
Forall ?x ?y ?z (?x[ex:near -> ?z] :- And(?x[ex:near -> ?y] ?y[ex:near -> ?z]))"""
NEARNESS = ("?x :near ?y", ":a :near ?y", "?x :near ?x", "?x :near ?y FILTER NOT EXISTS { ?y :near :a }")

OPEN, = _typed("edge", "TransitiveProperty")
edges = facts(("edge", NODES))
marked = facts(("edge", NODES), ("edge", NODES), ("state", ('"on"', '"low"')))
near = facts(("near", NODES))
badges = facts(("badge", ('"1"', '"2"', '"3"')), ("home", NODES), ("at", NODES))
names = facts((OWL.format("sameAs"), NODES), ("at", NODES))

RULES: dict[str, Program] = {
    "transitive closure": Program((LEFT, RIGHT), (), edges, REACHED),
    "transitive closure by halves": Program((BOTH, ITSELF), (), edges, REACHED),
    "a property that closes itself": Program((ITSELF,), (), edges, ("?x :edge ?y", "?x :edge ?x", ":a :edge ?y . ?y :edge ?z")),
    "symmetric and transitive": Program((NEAR,), (), near, NEARNESS),
    "mutual recursion": Program((MUTUAL,), (), edges, ("?x :odd ?y", "?x :even ?y", "?x :odd ?y ; :even ?y", ":a :even ?y")),
    "mutual recursion of other facts": Program((ALARM,), (), marked, ('?x :is "hot"', "?x :warms ?y", "?x ?p ?o")),
    "same generation": Program((GENERATION,), (), edges, ("?x :same ?y", ":b :same ?y FILTER(?y != :b)")),
    "distances": Program((DISTANCE,), (), marked, ("?x :steps ?n", "?x :steps ?n FILTER(?n > 1)")),
}
ONTOLOGIES: dict[str, Program] = {
    "owl: transitive": Program((), _typed("edge", "TransitiveProperty"), edges, ("?x :edge ?y", ":a :edge ?y . ?y :edge ?z")),
    "owl: symmetric and transitive": Program((), _typed("near", "SymmetricProperty", "TransitiveProperty"), near, NEARNESS),
    "owl: same by key": Program((), (*_typed("badge", "InverseFunctionalProperty"), *_typed("home", "FunctionalProperty")), badges, (
        "?x :at ?y", "?x owl:sameAs ?y FILTER(?x != ?y)", "?x :badge ?b ; :at ?y", "?x :home ?y")),
    "owl: same as told": Program((), (), names, ("?x :at ?y", ":a owl:sameAs ?y", "?x ?p :c")),
    "owl: schema in the stream": Program((), (), lambda random: edges(random) if random.randrange(4) else OPEN, ("?x :edge ?y",)),
}
DATASETS = (
    ("FROM STREAM :s {0}", "{{ {2} }}", 6), ("FROM STREAM :s {0} FROM STREAM :s {1}", "{{ {2} }}", 2),
    ("FROM STREAM :s {0} FROM :known", "{{ {2} }}", 2), ("FROM NAMED WINDOW :w ON :s {0} FROM :known", "{{ WINDOW :w {{ {2} }} }}", 2),
    ("FROM NAMED WINDOW :w ON :s {0} FROM NAMED WINDOW :v ON :s {1}", "{{ WINDOW :w {{ {2} }} WINDOW :v {{ {2} }} }}", 2))


def make_program(random: Random, programs: dict[str, Program], seconds: int) -> Scenario:
    """Rules as a query of its own: what begins to hold, and what ceases, at each instant."""
    name = random.choice(sorted(programs))
    program = programs[name]
    query = (f"Document(Prefix(ex <{SPACE}>) Import(<{STREAM}> <{rules.STREAM}>) Window {random.choice((500, 1500, 3000))} ms "
             f"Group({random.choice(program.rules)}))")
    return Scenario(f"{name} as a query", program, query, (), _items(random, program, seconds), None)


def make_scenario(random: Random, programs: dict[str, Program], seconds: int) -> Scenario:
    """A program with a query, and items in so many seconds."""
    name = random.choice(sorted(programs))
    program = programs[name]
    windows = [f"[RANGE {random.choice((1, 2, 3, 4, 4, 6))}s STEP {random.choice((1, 1, 2))}s]" for _ in range(2)]
    sources, where = random.choice([dataset[:2] for dataset in DATASETS for _ in range(dataset[2])])
    using = "USING RULES mine" if program.rules else "USING RULES owl2rl USING GRAPH :known"
    report, operator = random.choice(("", "", "", "REPORT ON CHANGE ")), random.choice(("", "", "", "ISTREAM ", "DSTREAM "))
    query = (f"{HEAD}REGISTER QUERY {QUERY} {report}AS SELECT {operator}* {sources.format(*windows)} {using} "
             f"WHERE {where.format(*windows, random.choice(program.patterns))}")
    known = tuple(program.facts(random) for _ in range(random.randrange(4))) if ":known" in sources else ()
    change = CHANGE_AT if random.randrange(4) == 1 else None
    return Scenario(name, program, query, known, _items(random, program, seconds), change)


def _items(random: Random, program: Program, seconds: int) -> tuple[tuple[int, tuple[Triple, ...]], ...]:
    return tuple(sorted((random.randrange(seconds * 1000), tuple({program.facts(random): None for _ in range(random.choice((1, 2, 2, 3)))}))
                        for _ in range(random.randrange(seconds // 2, 2 * seconds))))
