"""What one evaluation of a query may use, and the error of one that used more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

HOUR = 3_600_000
WINDOW_STEPS = 20_000
WINDOW_ITEMS = 1_000_000


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Of the evaluation at one T: its time in ms, the rows and the bytes (Arrow) of its relation, and the rows that its windows hold.
    A query may set lower ones of its own (option ``limits``)."""

    evaluation_ms: int = 20_000
    evaluation_rows: int = 1_000_000
    evaluation_bytes: int = 256 << 20
    state_rows: int = 5_000_000

    def own(self, given: Mapping[str, Any]) -> EvaluationLimits:
        """These limits with the lower ones that a query has; what it has above them counts as they do."""
        if not given:
            return self
        return EvaluationLimits(**{name: min(most, given.get(name, most)) for name, most in asdict(self).items()})


UNLIMITED = EvaluationLimits(7 * 86_400_000, 1 << 60, 1 << 60, 1 << 60)     # a replay, and tests: nobody waits beside them
NAMES = tuple(field.name for field in fields(EvaluationLimits))


class LimitExceeded(RuntimeError):
    """An evaluation went over a limit, by name. Whether it does may depend on the machine, so it is recorded in the input log."""

    def __init__(self, limit: str, detail: str) -> None:
        super().__init__(detail)
        self.limit = limit
        self.detail = detail

    @classmethod
    def of(cls, limit: str, most: int, actual: str) -> LimitExceeded:
        """The error of an evaluation that used `actual` where it may use `most`."""
        return cls(limit, f"{actual}; the limit {limit} is {most}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.limit, self.detail)


class Postponed(RuntimeError):
    """An evaluation was ended because others wait beside it. It is no failure: it is made again where nobody waits. Where it `stays` there,
    so are those that follow, however quick."""

    def __init__(self, why: str, stays: bool = False) -> None:
        super().__init__(why)
        self.stays = stays


class Cancelled(RuntimeError):
    """An evaluation was ended because its query is removed: nobody waits for it."""
