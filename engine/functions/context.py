"""What evaluation is made of: its one error, what it knows besides the row, and the entries of a table of functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from engine.ir.expressions import Exists


class ExpressionError(Exception):
    """A SPARQL expression error (SPARQL 1.1 section 17.2): no value. False in a filter, unbound after BIND."""


Row = Mapping[str, str]


@dataclass(slots=True)
class Context:
    """The surroundings of one evaluation. `at_ms` is the value of NOW(). `query` and `row` name query and solution: RAND, UUID, STRUUID and
    BNODE derive from them, so `row` must tell apart the rows of one evaluation (empty: the row's own bindings are taken). `exists` says
    whether the pattern of an `Exists` has a solution for a row; the expression applies NOT itself. `look_up` is asked for the time in ms
    that a time function (engine/ir/windows.py) has for the tokens of its arguments, None where there is none."""

    at_ms: int
    query: str = ""
    row: str = ""
    exists: Callable[[Exists, Row], bool] | None = None
    look_up: Callable[[str, tuple[str, ...]], int | None] | None = None

    def digest(self, purpose: str) -> bytes:
        """Sixteen bytes that depend on query, time, row and `purpose` only."""
        text = "\x1f".join((self.query, str(self.at_ms), self.row, purpose))
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def row_key(row: Row) -> str:
    """A text that tells rows of different bindings apart."""
    return "\x1e".join(f"{name}\x1d{row[name]}" for name in sorted(row))


@dataclass(frozen=True, slots=True)
class Function:
    """A function of tokens, of `least` to `most` arguments (None: any number). A `truth` function gives a Python bool, the others a token;
    all raise ExpressionError. One that is `volatile` is called with the context and a text that names the place of the call before its
    arguments; one that is `rowwise` needs the context's row."""

    name: str
    apply: Callable[..., str | bool]
    least: int
    most: int | None
    truth: bool = False
    volatile: bool = False
    rowwise: bool = False
