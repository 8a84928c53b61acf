"""Result files of the SPARQL suites (.srx .srj .csv .tsv .ttl .rdf .nt), and in what an answer differs from one."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyoxigraph
from pyoxigraph import QueryResultsFormat, RdfFormat

from engine.functions.terms import split, string
from engine.ir.terms import XSD
from engine.reference.sparql import Result
from tests.bags import Row, same_bag

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS = {".srx": QueryResultsFormat.XML, ".srj": QueryResultsFormat.JSON, ".tsv": QueryResultsFormat.TSV}
_NUMBERS = {"integer": int, "decimal": lambda text: Decimal(text).normalize() + 0, "float": float, "double": float}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a result file says. `plain`: the file (CSV) tells texts only, not terms. `variables` None: it does not say.

    `ordered`: the rows are in the order in which the query must give them, if it says one.
    """

    bag: list[dict[str, str]]
    variables: tuple[str, ...] | None = None
    plain: bool = False
    ordered: bool = False


def read_result(path: Path, form: str, base: str) -> Expected:
    """Read a file by its suffix; a graph is a result set where it describes one and the query is SELECT or ASK."""
    if path.suffix == ".csv":
        return _table(path.read_text("utf-8-sig"))
    if path.suffix in _FORMATS:
        return _result_set(pyoxigraph.parse_query_results(path.read_bytes(), _FORMATS[path.suffix]))
    format_ = RdfFormat.from_extension(path.suffix[1:])
    assert format_ is not None, f"no such format: {path}"
    quads = list(pyoxigraph.parse(path.read_bytes(), format_, base_iri=base))
    if form in ("SELECT", "ASK"):
        return _described(quads)
    return Expected([dict(triple) for triple in {(("s", str(q.subject)), ("p", str(q.predicate)), ("o", str(q.object))) for q in quads}])


def difference(result: Result, expected: Expected, keys: Sequence[str] = (), *, lax: bool = False) -> str | None:
    """What is wrong with a result; None where nothing is. Bags, up to names of blank nodes.

    `keys` are the variables by which the query orders its rows; `lax` (REDUCED): duplicates may be missing.
    """
    if result.form == "SELECT" and expected.variables is not None and set(result.variables) != set(expected.variables):
        return f"expected the variables {sorted(expected.variables)}, got {sorted(result.variables)}"
    found, right = _read(result.bag(), expected.plain), _read(expected.bag, expected.plain)
    if same_bag(found, right) or lax and len(found) <= len(right) and same_bag(_distinct(found), _distinct(right)):
        return _misordered(result.bag(), expected, keys) if expected.ordered and not lax else None
    missing, extra = _without(right, found), _without(found, right)
    return f"missing {missing[:5]}, too many {extra[:5]} ({len(found)} rows for {len(right)})"


def _misordered(found: Sequence[Row], expected: Expected, keys: Sequence[str]) -> str | None:
    """Rows with equal keys may stand in any order, and so may literals that SPARQL does not order (section 15.1): rows are compared
    with those whose keys are of the same kinds; kinds of the first key, with the others."""
    ours, right = ([[_sort_word(row.get(key), expected.plain) for key in keys] for row in rows] for rows in (found, expected.bag))
    for kinds in {tuple(kind for kind, _ in row) for row in right}:
        alike = [[[word for _, word in row] for row in rows if tuple(kind for kind, _ in row) == kinds] for rows in (ours, right)]
        if alike[0] != alike[1]:
            return f"expected the order {alike[1][:8]}, got {alike[0][:8]}"
    ranks = [[min(row[0][0], "3") for row in rows] for rows in (ours, right) if keys]
    return None if ranks[:1] == ranks[1:] else f"expected rows with keys of the kinds {ranks[1]}, got {ranks[0]}"


def _sort_word(token: str | None, plain: bool) -> tuple[str, str]:
    """What kind of key a term is (0 to 2: unbound, blank node, IRI), and its value, the same for all blank nodes and equal numbers."""
    if token is None or token.startswith("_:"):
        return "0" if token is None else "1", ""
    if plain:
        return "3", split(token).lexical
    if token.startswith("<"):
        return "2", token
    word, datatype = _word(token, False), split(token).datatype.removeprefix(XSD)
    return ("number", word.rpartition(" ")[0]) if datatype in _NUMBERS else (datatype, word)


def _distinct(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [dict(row) for row in {tuple(sorted(row.items())) for row in rows}]


def _table(text: str) -> Expected:
    """SPARQL 1.1 Query Results CSV: an empty cell is an unbound variable or an empty string."""
    names, *lines = csv.reader(text.splitlines(keepends=True))
    rows = [{name: cell if cell.startswith("_:") else string(cell) for name, cell in zip(names, line)} for line in lines]
    return Expected(rows, tuple(names), plain=True, ordered=True)


def _result_set(parsed: object) -> Expected:
    if isinstance(parsed, pyoxigraph.QueryBoolean):
        return Expected([{}] if parsed else [])
    assert isinstance(parsed, pyoxigraph.QuerySolutions)
    names = tuple(v.value for v in parsed.variables)
    rows = [{name: str(solution[name]) for name in names if solution[name] is not None} for solution in parsed]
    return Expected(rows, names, ordered=True)


def _described(quads: Iterable[pyoxigraph.Quad]) -> Expected:
    """A result set in the vocabulary of the test suites (rs:ResultSet); ordered where its solutions have an rs:index."""
    values: dict[tuple[str, str], list[str]] = {}
    for quad in quads:
        values.setdefault((str(quad.subject), quad.predicate.value), []).append(str(quad.object))
    booleans = [o for (_, p), objects in values.items() if p == RS + "boolean" for o in objects]
    if booleans:
        return Expected([{}] if split(booleans[0]).lexical in ("true", "1") else [])
    names = tuple(split(o).lexical for (_, p), objects in values.items() if p == RS + "resultVariable" for o in objects)
    solutions = [o for (_, p), objects in values.items() if p == RS + "solution" for o in objects]
    indexes = {s: int(split(values[s, RS + "index"][0]).lexical) for s in solutions if (s, RS + "index") in values}
    rows = [{split(values[binding, RS + "variable"][0]).lexical: values[binding, RS + "value"][0]
             for binding in values.get((solution, RS + "binding"), ()) if (binding, RS + "value") in values}
            for solution in sorted(solutions, key=lambda s: indexes.get(s, 0))]
    return Expected(rows, names or None, ordered=bool(solutions) and len(indexes) == len(solutions))


def _read(rows: Iterable[Row], plain: bool) -> list[dict[str, str]]:
    return [{name: _word(token, plain) for name, token in row.items() if not (plain and token == '""')} for row in rows]


def _word(token: str, plain: bool) -> str:
    """What is compared of a term: numbers of one type by their values, which the files spell in many ways."""
    if token.startswith(("_:", "<")) and not plain or token.startswith("_:"):
        return token
    lexical, datatype = split(token).lexical, split(token).datatype.removeprefix(XSD)
    if plain:
        return f'"{lexical}"'
    if datatype in _NUMBERS:
        try:
            return f"{_NUMBERS[datatype](lexical)} {datatype}"
        except (ValueError, ArithmeticError):
            return token
    return token


def _without(rows: list[dict[str, str]], others: list[dict[str, str]]) -> list[dict[str, str]]:
    rest = list(others)
    result = []
    for row in rows:
        if row in rest:
            rest.remove(row)
        else:
            result.append(row)
    return result
