"""Result files of the SPARQL suites (.srx .srj .csv .tsv .ttl .rdf .nt), and in what an answer differs from one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyoxigraph
from pyoxigraph import QueryResultsFormat, RdfFormat

from engine.functions.terms import split
from engine.ir.terms import XSD
from engine.reference.sparql import Result
from tests.bags import Row, same_bag

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS = {".srx": QueryResultsFormat.XML, ".srj": QueryResultsFormat.JSON, ".tsv": QueryResultsFormat.TSV,
            ".csv": QueryResultsFormat.CSV}
_NUMBERS = {"integer": int, "decimal": lambda text: Decimal(text).normalize() + 0, "float": float, "double": float}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a result file says. `plain`: the file (CSV) tells texts only, not terms. `variables` None: it does not say."""

    bag: list[dict[str, str]]
    variables: tuple[str, ...] | None = None
    plain: bool = False


def read_result(path: Path, form: str) -> Expected:
    """Read a file by its suffix; a graph is a result set where it describes one and the query is no CONSTRUCT."""
    if path.suffix in _FORMATS:
        return _result_set(pyoxigraph.parse_query_results(path.read_bytes(), _FORMATS[path.suffix]), path.suffix == ".csv")
    format_ = RdfFormat.from_extension(path.suffix[1:])
    assert format_ is not None, f"no such format: {path}"
    quads = list(pyoxigraph.parse(path.read_bytes(), format_, base_iri=path.resolve().as_uri()))
    if form in ("SELECT", "ASK"):
        return _described(quads)
    return Expected([{"s": str(q.subject), "p": str(q.predicate), "o": str(q.object)} for q in quads])


def difference(result: Result, expected: Expected) -> str | None:
    """What is wrong with a result; None where nothing is. Bags, up to names of blank nodes."""
    if result.form == "SELECT" and expected.variables is not None and set(result.variables) != set(expected.variables):
        return f"expected the variables {sorted(expected.variables)}, got {sorted(result.variables)}"
    found, right = _read(result.bag(), expected.plain), _read(expected.bag, expected.plain)
    if same_bag(found, right):
        return None
    missing, extra = _without(right, found), _without(found, right)
    return f"missing {missing[:5]}, too many {extra[:5]} ({len(found)} rows for {len(right)})"


def _result_set(parsed: object, plain: bool) -> Expected:
    if isinstance(parsed, pyoxigraph.QueryBoolean):
        return Expected([{}] if parsed else [])
    assert isinstance(parsed, pyoxigraph.QuerySolutions)
    names = tuple(v.value for v in parsed.variables)
    rows = [{name: str(solution[name]) for name in names if solution[name] is not None} for solution in parsed]
    return Expected(rows, names, plain)


def _described(quads: Iterable[pyoxigraph.Quad]) -> Expected:
    """A result set in the vocabulary of the test suites (rs:ResultSet)."""
    values: dict[tuple[str, str], list[str]] = {}
    for quad in quads:
        values.setdefault((str(quad.subject), quad.predicate.value), []).append(str(quad.object))
    booleans = [o for (_, p), objects in values.items() if p == RS + "boolean" for o in objects]
    if booleans:
        return Expected([{}] if '"true"' in booleans[0] else [])
    names = tuple(split(o).lexical for (_, p), objects in values.items() if p == RS + "resultVariable" for o in objects)
    solutions = [o for (_, p), objects in values.items() if p == RS + "solution" for o in objects]
    rows = [{split(values[binding, RS + "variable"][0]).lexical: values[binding, RS + "value"][0]
             for binding in values.get((solution, RS + "binding"), ())} for solution in solutions]
    return Expected(rows, names)


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
