"""Random small datasets and random SPARQL queries over them, from any source of random numbers (Hypothesis's shrinks them).

Queries are valid SPARQL 1.1 by construction: BIND and AS take new variables, a grouped SELECT shows its keys and aggregates only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.differential.conditions import Conditions

PREFIXES = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
IRIS = (":a", ":b", ":c")
PREDICATES = (":p", ":p", ":p", ":q", ":q", ":r")
STEM = "http://e/graphs/"
GRAPHS = (f"{STEM}1", f"{STEM}2")
LITERALS = ('""', '"a"', '"b"', '"10"', '"a"@en', '"a"@fr', "0", "1", "2", "10", "-1", "1.5", "2.5", "1e0", "2.5e0", "true", "false",
            '"2.5"^^xsd:float', '"x"^^:dt', '"x"^^xsd:integer', '"2020-01-01T00:00:00Z"^^xsd:dateTime',
            '"2020-01-01T01:00:00+01:00"^^xsd:dateTime', '"2021-06-01T00:00:00"^^xsd:dateTime', '"2020-01-01"^^xsd:date')
VARIABLES = ("?a", "?b", "?c", "?d", "?e")


@dataclass(frozen=True)
class Case:
    """A query text; its default graph and its named graphs by IRI, each as lines of Turtle."""

    query: str
    default: tuple[str, ...]
    named: dict[str, tuple[str, ...]]

    @property
    def text(self) -> str:
        """The query and, below it, all triples."""
        return "\n".join((self.query.removeprefix(PREFIXES), *self.default, *(line for lines in self.named.values() for line in lines)))


def make_case(random: Random) -> Case:
    """One random query with its dataset."""
    named = {iri: graph(random, 6) for iri in GRAPHS[:random.choice((0, 1, 2, 2))]}
    return Case(PREFIXES + Queries(random).query(), graph(random, 12), named)


def graph(random: Random, most: int) -> tuple[str, ...]:
    """Triples of few terms, so that many join."""
    nodes = random.choice(((":a", "_:x"), (":a", ":b", "_:x"), (":a", ":b", "_:x"), (":a", ":b", ":c", "_:x", "_:y")))
    literals = random.sample(LITERALS, 4)
    return tuple(f"{random.choice(nodes)} {random.choice(PREDICATES)} {random.choice(nodes if random.randrange(100) < 55 else literals)} ."
                 for _ in range(random.choice((0, most // 2, most, most, most, most))))


class Queries:
    """Makes one query."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.fresh = 0
        self.conditions = Conditions(random, LITERALS, self.group)

    def query(self) -> str:
        """SELECT mostly; ASK and CONSTRUCT now and then."""
        form = self.random.randrange(100)
        if form < 5:
            return f"ASK {self.group(2)}"
        if form < 12:
            return f"CONSTRUCT {{ {self.template()} }} {self.group(2)}"
        return self.select(2, order=True)

    def template(self) -> str:
        """Triples of variables that may be unbound or stand where their terms cannot."""
        terms = (*VARIABLES, ":a", "_:n", '"l"')
        return " ".join(f"{self.pick((*VARIABLES, ':a', '_:n'))} {self.pick(('?p', *PREDICATES))} {self.pick(terms)} ."
                        for _ in range(self.random.randint(1, 2)))

    def select(self, depth: int, order: bool = False) -> str:
        """A SELECT level; a sub-SELECT has neither order nor LIMIT, for which of its rows it gives would be anybody's choice."""
        body = self.group(depth)
        if self.chance(30):
            head, tail = self.grouped()
        else:
            head, tail = self.projected(), ""
        if self.chance(10):
            tail += f" VALUES {self.data()}"
            if order:
                return f"SELECT {head} {body} {tail}"
        if order and self.chance(30):
            keys = " ".join(self.pick(("{}", "DESC({})", "ASC({})")).format(self.pick(VARIABLES))
                            for _ in range(self.random.randint(1, 2)))
            tail += f" ORDER BY {keys}"
        return f"SELECT {head} {body} {tail}"

    def projected(self) -> str:
        """A list of variables, perhaps with an expression; or all."""
        words = self.pick(("", "", "DISTINCT ")) + ("*" if self.chance(40) else " ".join(self.some(VARIABLES)))
        if not words.endswith("*") and self.chance(30):
            words += f" ({self.conditions.value(2)} AS {self.new()})"
        return words

    def grouped(self) -> tuple[str, str]:
        """Keys and aggregates, and the GROUP BY and HAVING that go with them."""
        keys, by = [], []
        for variable in self.some(VARIABLES)[:self.random.randint(0, 2)]:
            if self.chance(25):
                key = self.new()
                keys.append(key)
                by.append(f"({self.conditions.value(1)} AS {key})")
            else:
                keys.append(variable)
                by.append(variable)
        shown = [f"({self.aggregate()} AS {self.new()})" for _ in range(self.random.randint(1, 2))]
        if self.chance(20):
            shown.append(f"(({self.aggregate()} + 1) AS {self.new()})")
        tail = f"GROUP BY {' '.join(by)}" if by else ""
        if self.chance(20):
            tail += f" HAVING ({self.aggregate()} {self.pick(('>', '=', '!=', '<='))} {self.pick(('0', '1', '2.5'))})"
        return " ".join((*keys, *shown)), tail

    def aggregate(self) -> str:
        """SAMPLE and GROUP_CONCAT of several values would be anybody's choice: they are taken of one."""
        function = self.pick(("COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
        distinct = self.pick(("", "", "DISTINCT "))
        if function == "COUNT" and self.chance(40):
            return f"COUNT({distinct}*)"
        if function in ("SAMPLE", "GROUP_CONCAT"):
            return f"{function}({distinct}{self.pick(('1', ':a', 'BOUND(?a)', 'IF(true, :b, ?a)'))})" if function == "SAMPLE" else (
                f'GROUP_CONCAT({distinct}STR(IF(true, :a, ?b)) ; SEPARATOR = "{self.pick((" ", "", ", "))}")')
        argument = self.pick(VARIABLES) if self.chance(70) else self.conditions.value(1)
        return f"{function}({distinct}{argument})"

    def group(self, depth: int) -> str:
        """``{ ... }`` of one to three parts."""
        parts = [self.triples() if self.chance(75) else self.part(depth)]
        parts += [self.part(depth) for _ in range(self.random.randint(0, 2 if depth else 1))]
        return f"{{ {' '.join(parts)} }}"

    def part(self, depth: int) -> str:
        """One part of a group; those that hold groups only while `depth` lasts."""
        simple = (self.triples, self.triples, self.path, self.filter, self.bind, self.values)
        if depth == 0:
            return self.pick(simple)()
        below = depth - 1
        nested = (lambda: f"OPTIONAL {self.group(below)}", lambda: f"OPTIONAL {self.group(below)}",
                  lambda: f"MINUS {self.group(below)}", lambda: f"{self.group(below)} UNION {self.group(below)}",
                  lambda: f"{{ {self.select(below)} }}", lambda: f"FILTER {self.conditions.exists(below)}",
                  lambda: f"GRAPH {self.pick(('?g', '?a', f'<{GRAPHS[0]}>'))} {self.group(below)}", lambda: self.group(below))
        return self.pick((*simple, *nested))()

    def triples(self) -> str:
        """One or two triple patterns, mostly of variables."""
        patterns = []
        for _ in range(self.random.choice((1, 1, 2))):
            subject = self.pick(VARIABLES) if self.chance(85) else self.pick((":a", ":b", self.blank(), "[]"))
            predicate = self.pick(PREDICATES) if self.chance(75) else self.pick(("?p", "?p", "?b"))
            others = [v for v in VARIABLES if v != subject or self.chance(10)]
            object_ = self.pick(others) if self.chance(92) else self.pick((":b", "1", "[]", self.blank()))
            patterns.append(f"{subject} {predicate} {object_} .")
        return " ".join(patterns)

    def path(self) -> str:
        ends = self.pick(("{0} {2} {1}", "{0} {2} {1}", "{0} {2} {1}", "{0} {2} {0}", ":a {2} {1}", "{0} {2} :b", ":a {2} :b"))
        return ends.format(*self.random.sample(VARIABLES, 2), self.path_of(2)) + " ."

    def path_of(self, depth: int) -> str:
        """A property path; links where `depth` is used up."""
        if depth == 0:
            return self.pick(PREDICATES)
        shape = self.pick(("{}/{}", "({}|{})", "({})?", "({})*", "({})+", "^({})", "!", "({})*/{}"))
        if shape == "!":
            return self.pick(("!:p", "!(:p|:q)", "!^:p", "!(:p|^:q)"))
        return shape.format(*(self.path_of(depth - 1) for _ in range(shape.count("{}"))))

    def filter(self) -> str:
        return f"FILTER({self.conditions.test(2)})" if self.chance(60) else f"FILTER(!({self.conditions.test(1)}))"

    def bind(self) -> str:
        return f"BIND({self.conditions.value(2)} AS {self.new()})"

    def values(self) -> str:
        return f"VALUES {self.data()}"

    def data(self) -> str:
        """Inline data with UNDEF."""
        names = self.some(VARIABLES)[:2]
        cells = (*IRIS, "1", '"a"', "2.5", "UNDEF", "UNDEF")
        rows = " ".join(f"({' '.join(self.pick(cells) for _ in names)})" for _ in range(self.random.randint(0, 3)))
        return f"({' '.join(names)}) {{ {rows} }}"

    def some(self, choices: Sequence[str]) -> list[str]:
        """One or more of them."""
        return self.random.sample(list(choices), self.random.randint(1, len(choices)))

    def new(self) -> str:
        """A variable that nothing else uses yet; FILTERs may, and later groups do by chance."""
        self.fresh += 1
        return f"?n{self.fresh}"

    def blank(self) -> str:
        """A blank node label of its own: no two groups may share one."""
        self.fresh += 1
        return f"_:n{self.fresh}"

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.random.randrange(len(choices))]
