"""Which steps of a closure's rules a round runs."""

from __future__ import annotations

import pytest

from engine.plan.derive import Seen, Shape
from engine.sql.closing import Closing, StepText, Stratum


def shape(property_: str | None) -> Shape:
    return Shape(None if property_ is None else frozenset((property_,)), None, False, False)


def rows(*properties: str) -> Seen:
    return {property_: (set(), True, False) for property_ in properties}


def step(rule: int, new: str | None, *known: str | None) -> StepText:
    return StepText(rule, (shape(new),), tuple(map(shape, known)), frozenset(), f"[{rule} {new}]")


JOINED = step(0, "<p>", "<q>"), step(0, "<q>", "<p>")
WITH_ANY = step(1, None, "<p>"), step(1, "<p>", None)
ALONE = (step(2, "<p>"),)


@pytest.mark.parametrize(("old", "expected"), [
    (None, ("[0 <p>]", "[0 <q>]", "[1 None]", "[1 <p>]", "[2 <p>]")),
    (rows(), ("[0 <p>]", "[1 None]", "[2 <p>]")),
    (rows("<p>"), ("[0 <q>]", "[1 None]", "[1 <p>]", "[2 <p>]")),
    (rows("<q>"), ("[0 <p>]", "[1 <p>]", "[2 <p>]")),
    (rows("<p>", "<q>"), ("[0 <p>]", "[0 <q>]", "[1 None]", "[1 <p>]", "[2 <p>]"))],
    ids=["later round", "nothing else", "the first", "the second", "both"])
def test_a_step_is_enough_whose_new_atom_matches_no_other_rows(old: Seen | None, expected: tuple[str, ...]) -> None:
    """In the first round the new rows are all there are, but for those of the background and those that are kept."""
    closing = Closing("c", "", (), "", "")
    found = closing.due(Stratum((*JOINED, *WITH_ANY, *ALONE), ()), rows("<p>", "<q>"), rows("<p>", "<q>"), old)
    assert found is not None
    assert [text for text in expected if text in found.text] == list(expected) and found.text.count("[") == len(expected)
