"""What an entry of a table of functions is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function of tokens, of `least` to `most` arguments (None: any number).

    A `truth` function gives a Python bool, the others a token; all raise ExpressionError. One that is `volatile` is called with
    the context and a text that names the place of the call before its arguments; one that is `rowwise` needs the context's row.
    """

    name: str
    apply: Callable[..., str | bool]
    least: int
    most: int | None
    truth: bool = False
    volatile: bool = False
    rowwise: bool = False
