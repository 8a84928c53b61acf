"""Other queries beside those of a case: they are different, and those of the case stay as they are."""

from __future__ import annotations

from engine.records import Register
from grammar import parse
from tests.beside import OTHER, beside, other
from tests.case_files import find_cases

TEXT = "PREFIX : <http://ex.org/>\nSELECT ?s FROM STREAM :s [RANGE 4s STEP 2s] WHERE { ?s :p 12 ; :q ?o FILTER (?o > 3) }"


def test_others_differ_in_ranges_numbers_and_names() -> None:
    texts = {other(TEXT, number) for number in range(20)}
    assert len(texts) >= 8
    assert all(any(part in text for text in texts) for part in ("RANGE 8s", ":p 13", ":p 12 ; :p"))
    for text in texts:
        parse(text)


def test_what_is_no_query_any_more_stays_as_it_is() -> None:
    assert other("no query 1", 4) == "no query 1"


def test_records_stay_in_order_and_others_are_beside_them() -> None:
    case = next(case for case in find_cases() if len(case.queries) == 1 and not case.rules and not case.media)
    records = beside(case.records(), 20)
    assert [record.position for record in records] == list(range(1, len(records) + 1))
    names = [record.query for record in records if isinstance(record, Register)]
    assert sum(OTHER in name for name in names) == 20 and sum(OTHER not in name for name in names) == 1
    assert all(record.since <= record.position for record in records if isinstance(record, Register))
