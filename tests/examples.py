"""Sizes of slow random tests: small in `make test` and `make test-soak`, large in `make test-long`."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def many(short: int, long: int) -> int:
    """So many in `make test` or `make test-soak`, and in `make test-long`."""
    return long if os.environ.get("THALWEG_HYPOTHESIS") == "long" else short


def examples(short: int, long: int) -> settings:
    """The same of what hypothesis draws."""
    return settings(max_examples=many(short, long))


def rotated(names: Iterable[str], others: Sequence[Any]) -> list[Any]:
    """Each name with each of the others, as parameters: in `make test-long` with all of them, else with one, another from name to name."""
    return [pytest.param(name, others[(number + more) % len(others)], marks=[pytest.mark.long] * (more > 0))
            for number, name in enumerate(names) for more in range(len(others))]
