"""What docs/sparql.md shows of the dialects holds: each spelling of an example gives its answers, on both evaluators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.compiler import BUILT_IN_RULES
from engine.ir.spans import DiagnosticError
from engine.records import Record
from engine.runtime.pump import Pump
from engine.runtime.results import ResultLog
from engine.execution.executor import Executor
from grammar import parse
from tests import sparks
from tests.bags import same_bag
from tests.case_files import Answers
from tests.case_rows import show_row
from tests.dialect_examples import DIALECTS, PAGE, PROLOGUE, Example, Row, examples, rows
from tests.differential.plans import in_process
from tests.encoded import encode
from tests.treatments import reference

EXAMPLES = examples()
ROWS = rows()
ANSWERED = [(example, dialect) for example in EXAMPLES.values() for dialect in example.texts if not example.refused]
REFUSED = [(example, dialect) for example in EXAMPLES.values() for dialect in example.texts if example.refused]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with in_process() as here:
        yield here


def planned(records: Sequence[Record], executor: Executor) -> Answers:
    """The answers of the plans on DuckDB, run in this process."""
    results = ResultLog(None)
    pump = Pump(executor, results, parse, sparks.compile_query)
    try:
        events = pump.process(encode(records)).results
        assert not [query.error for query in pump.queries.values() if query.error]
    finally:
        results.close()
    return sparks.answers(events, sorted(pump.queries))


@pytest.mark.parametrize(("example", "dialect"), ANSWERED, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("how", ["reference", "plan"])
def test_answers(example: Example, dialect: str, how: str, executor: Executor, tmp_path: Path) -> None:
    case = example.case(dialect, tmp_path)
    answers = (reference(case.records()) if how == "reference" else planned(case.records(), executor))["q"]
    expected = case.expected()["q"]
    assert expected, "an example has an answer"
    assert [at for at, _ in answers] == [at for at, _ in expected]
    for (at, bag), (_, right) in zip(answers, expected, strict=True):
        assert same_bag(bag, right), (at, [show_row(row, case.prefixes) for row in bag])


@pytest.mark.parametrize(("example", "dialect"), REFUSED, ids=lambda value: getattr(value, "name", value))
def test_refusals(example: Example, dialect: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        sparks.compile_query(parse(PROLOGUE + example.texts[dialect]), "q", {}, BUILT_IN_RULES)
    assert [f"{found.code}: {found.message}" for found in caught.value.diagnostics] == [example.refused]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.example or row.what)
def test_a_row_has_an_example_of_each_spelling(row: Row) -> None:
    """A cell with code is a spelling that the row's example shows; one without says that the dialect has none."""
    assert EXAMPLES[row.example].texts.keys() == {dialect for dialect in DIALECTS if "`" in row.cells[dialect]}
    assert all(row.cells.values())


def test_every_example_belongs_to_a_row() -> None:
    assert sorted(EXAMPLES) == sorted(row.example for row in ROWS)
    assert len(EXAMPLES) == PAGE.count("```example\n"), "names of examples are unique"
    assert ANSWERED and REFUSED
