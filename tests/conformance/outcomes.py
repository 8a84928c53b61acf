"""What became of one case of a suite."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """SKIPPED: the query was refused at registration, or the suite asks for something that is named in the reason."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    case: str
    verdict: Verdict
    reason: str = ""


def refusal(error: Exception) -> str:
    """A refusal in one line: its code and first sentence."""
    diagnostics = getattr(error, "diagnostics", ())
    return "; ".join(f"refused, {d.code}: {d.message}" for d in diagnostics) or f"refused: {error}"
