"""What the SQL text knows of an intermediate relation, and the column arithmetic of joins."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.facts import pieces
from engine.functions.typed import Kinds
from engine.ir.terms import Variable
from engine.sql.functions.values import NULL_STRING


@dataclass(frozen=True, slots=True)
class Relation:
    """A named common table expression. `keys` are the columns every operator carries along: ``tick`` (the evaluation time; absent from a
    relation of static facts only) and, inside EXISTS, the identity columns of the outer row. `spine` is a relation that lists every value
    of the keys. `certain` variables are never null; `typed` ones have companions ``_k _n _m``, of these kinds; `booleans` are truth values,
    not tokens; an `ordered` relation has the rank ``ord``. With `intervals` a row holds from point ``lo`` to ``hi``."""

    name: str
    keys: tuple[str, ...]
    spine: str
    variables: tuple[Variable, ...]
    certain: frozenset[Variable] = frozenset()
    typed: Mapping[Variable, Kinds] = field(default_factory=dict)
    booleans: frozenset[Variable] = frozenset()
    ordered: bool = False
    intervals: bool = False


MOST_INLINE = 500   # rows of constants: DuckDB takes some 10 us to parse one
COMPANIONS = {"_k": ("kind", "TINYINT"), "_n": ("number", "DOUBLE"), "_m": ("micros", "BIGINT")}


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows of tokens that a text reads from a table of columns ``c0 c1 ...``, since they are too many to be written out; with the kind,
    number and micros of the `typed` column, where one is."""

    rows: tuple[tuple[str | None, ...], ...]
    typed: int | None = None

    @property
    def name(self) -> str:
        """The name of the table, which follows from what it holds: ask once, the rows may be many."""
        found = hashlib.sha256(str(self.typed).encode())
        for rows in pieces(self.rows):
            found.update(json.dumps(rows).encode())
        return f"d_{found.hexdigest()[:16]}"


class Namer:
    """Generated column names: request text never becomes an identifier."""

    def __init__(self) -> None:
        self._names: dict[Variable, str] = {}

    def __call__(self, variable: Variable) -> str:
        return self._names.setdefault(variable, f"c{len(self._names)}")


def columns(relation: Relation, name: Namer, alias: str = "", *, order: bool = True) -> list[str]:
    """Every column of a relation, qualified by `alias`."""
    dot = f"{alias}." if alias else ""
    found = [f"{dot}{key}" for key in relation.keys]
    for variable in relation.variables:
        found.append(f"{dot}{name(variable)}")
        if variable in relation.typed:
            found += [f"{dot}{name(variable)}{suffix}" for suffix in COMPANIONS]
    if relation.ordered and order:
        found.append(f"{dot}ord")
    if relation.intervals:
        found += [f"{dot}lo", f"{dot}hi"]
    return found or ["1 AS u"]


def padded(side: Relation, result: Relation, name: Namer, alias: str = "") -> list[str]:
    """The columns of `result` drawn from `side`, null where it lacks a variable."""
    dot = f"{alias}." if alias else ""
    found = [f"{dot}{key}" for key in result.keys]
    has = frozenset(side.variables)
    for variable in result.variables:
        column = name(variable)
        there = variable in has
        found.append(f"{dot}{column}" if there else f"{NULL_STRING} AS {column}")
        if variable in result.typed:
            found += [f"{dot}{column}{suffix}" if variable in side.typed else f"CAST(NULL AS {kind}) AS {column}{suffix}"
                      for suffix, (_, kind) in COMPANIONS.items()]
    return found or ["1 AS u"]


def typed_columns(column: str, source: str = "") -> list[str]:
    """The typed companions of an object, drawn from the facts' columns."""
    return [f"{source}{fact} AS {column}{suffix}" for suffix, (fact, _) in COMPANIONS.items()]


def key_condition(left: tuple[str, ...], right: tuple[str, ...]) -> list[str]:
    """Equality of the keys that both sides have; outer-row identities may be null."""
    return [f"a.{key} = b.{key}" if key == "tick" else f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in left if key in right]


def named(columns: Iterable[tuple[str, str]]) -> list[str]:
    """A select list of columns, each with the name that it gets."""
    return [f"{column} AS {name}" for column, name in columns]


def compatible(left: Relation, right: Relation, name: Namer, shared: Iterable[Variable]) -> list[str]:
    """SPARQL's compatibility of the shared variables, as plain equality where both are certainly bound."""
    conditions = []
    for variable in shared:
        column = name(variable)
        if variable in left.certain and variable in right.certain:
            conditions.append(f"a.{column} = b.{column}")
        else:
            conditions.append(f"(a.{column} = b.{column} OR a.{column} IS NULL OR b.{column} IS NULL)")
    return conditions


def interval_columns(left: Relation, right: Relation) -> list[str]:
    """When a joined row holds: while both of its parts do."""
    sides = [side for side, relation in (("a", left), ("b", right)) if relation.intervals]
    if len(sides) == 2:
        return ["greatest(a.lo, b.lo) AS lo", "least(a.hi, b.hi) AS hi"]
    return [f"{side}.{end} AS {end}" for side in sides for end in ("lo", "hi")]


def joined_columns(left: Relation, right: Relation, name: Namer) -> tuple[list[str], dict[Variable, Kinds]]:
    """The select list of a join, and the kinds of its variables that keep typed companions."""
    found = [f"a.{key}" for key in left.keys] + [f"b.{key}" for key in right.keys if key not in left.keys]
    kept: dict[Variable, Kinds] = {}
    in_left, in_right = frozenset(left.variables), frozenset(right.variables)
    for variable in joined_variables(left, right):
        column, (sides, typed) = name(variable), _sides(variable, left, right, variable in in_left, variable in in_right)
        found.append(f"{_drawn(sides, column)} AS {column}")
        if typed:
            kept[variable] = kinds_of(variable, left, right)
            found += [f"{_drawn(typed, column + suffix)} AS {column}{suffix}" for suffix in COMPANIONS]
    found += interval_columns(left, right)
    return found or ["1 AS u"], kept


def kinds_of(variable: Variable, *sides: Relation) -> Kinds:
    """The kinds that a variable may have where its companions come from one of some relations."""
    return frozenset().union(*(side.typed.get(variable, ()) for side in sides))


def joined_variables(left: Relation, right: Relation) -> tuple[Variable, ...]:
    """The variables of two relations side by side, each once."""
    return tuple(dict.fromkeys((*left.variables, *right.variables)))


def shared_variables(left: Relation, right: Relation) -> list[Variable]:
    """The variables of both, in the order of the left one."""
    others = frozenset(right.variables)
    return [variable for variable in left.variables if variable in others]


def _sides(variable: Variable, left: Relation, right: Relation, in_left: bool, in_right: bool) -> tuple[str, str]:
    """From which sides of a join, by alias, a variable is drawn, and from which its companions ('': it has none)."""
    typed = "a" * (variable in left.typed) + "b" * (variable in right.typed)
    if not in_left or not in_right:
        return "a" if in_left else "b", typed
    if variable not in left.certain:
        return "ab", typed if typed == "ab" else ""
    if variable in left.typed:
        return "a", "a"
    return "a", typed if variable in right.certain else ""


def _drawn(sides: str, column: str) -> str:
    """A column of one side, or of the first that has a value."""
    return f"coalesce(a.{column}, b.{column})" if sides == "ab" else f"{sides}.{column}"
