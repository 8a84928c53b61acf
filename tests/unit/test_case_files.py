"""The case loader: rows as text, what an append decides (against the runtime's own), shuffling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from engine.ir.terms import XSD, literal
from engine.records import Event
from engine.runtime.append import Appender
from engine.runtime.rows import prepare
from engine.runtime.streams import Source
from tests.case_files import Case, find_cases, load_case
from tests.case_rows import PREFIXES, read_row, show_row

TOKENS = st.one_of(
    st.sampled_from(["<http://ex.org/a>", "<http://ex.org/a/b>", "<urn:x>", "_:b1", f"<{XSD}integer>", "<http://ex.org/>"]),
    st.builds(literal, st.text(max_size=8)), st.builds(lambda s: literal(s, lang="en-gb"), st.text(max_size=8)),
    st.builds(literal, st.sampled_from(["1", "-01", "+1.50", "1e3", "true", "x y", ".5", ""]),
              st.sampled_from([XSD + name for name in ("integer", "decimal", "double", "boolean", "date")] + ["http://ex.org/t"])))


@given(st.dictionaries(st.sampled_from(["x", "y", "long_name"]), TOKENS, max_size=3))
def test_rows_read_back(row: dict[str, str]) -> None:
    assert read_row(show_row(row, PREFIXES), PREFIXES) == row


def test_rows_are_short() -> None:
    row = {"s": "<http://ex.org/a>", "v": f'"21"^^<{XSD}integer>', "d": f'"2020-01-01"^^<{XSD}date>', "l": '"hot"@en'}
    assert show_row(row, PREFIXES) == '?d="2020-01-01"^^xsd:date ?l="hot"@en ?s=:a ?v=21'


@pytest.mark.parametrize("text", ["?x=nothing", "x=:a", "?x=:a ?y"])
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        read_row(text, PREFIXES)


def write_case(folder: Path, times: list[int], lateness: int) -> Case:
    """A case whose items show their places."""
    (folder / "case.json").write_text(f'{{"about": "made", "streams": {{"s": {{"lateness": {lateness}}}}}}}')
    (folder / "s.events").write_text("".join(f"{t} :a :place {place} .\n" for place, t in enumerate(times)))
    return load_case(folder)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(0, 6))
def test_stamps_and_lateness_are_the_runtimes(tmp_path_factory: pytest.TempPathFactory, times: list[int], lateness: int) -> None:
    case = write_case(tmp_path_factory.mktemp("case"), times, lateness)
    taken = [(e.t, e.triples[0][2], e.watermark) for e in case.records() if isinstance(e, Event)]
    appender = Appender(sources={"s": Source("s", arrival=False, lateness_ms=lateness)})
    items = [(t, None, (("<http://ex.org/a>", "<http://ex.org/place>", f'"{place}"^^<{XSD}integer>'),)) for place, t in enumerate(times)]
    rows, _ = appender.push("s", prepare(items), now_ms=0)
    events = [r for r in rows[0].to_pylist() if r["record"] == 0] if rows else []
    assert taken == [(r["t"], r["o"], r["watermark"]) for r in events]


@given(st.lists(st.integers(0, 20), min_size=2, max_size=12), st.integers(0, 6), st.integers(0, 99))
def test_shuffling_makes_nothing_late(tmp_path_factory: pytest.TempPathFactory, times: list[int], lateness: int, seed: int) -> None:
    case = write_case(tmp_path_factory.mktemp("case"), times, lateness)
    before, after = ([e.triples[0][2] for e in case.records(shuffle) if isinstance(e, Event)] for shuffle in (None, seed))
    assert sorted(before) == sorted(after)


def test_shuffling_does_something() -> None:
    case = next(c for c in find_cases() if c.name == "order/out-of-order")
    orders = {tuple(e.t for e in case.records(seed) if isinstance(e, Event)) for seed in range(10)}
    assert len(orders) > 2
