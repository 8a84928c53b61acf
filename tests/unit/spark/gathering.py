"""Groups of tokens of one kind, and the aggregates over a column ``c``, for the tests on both executors."""

from __future__ import annotations

from engine.functions.typed import ANY_KIND, Kinds
from engine.ir.expressions import Aggregate
from engine.ir.terms import Variable
from engine.sql.dialect import Dialect
from engine.sql.functions import aggregates
from engine.sql.functions.aggregates import Gathered
from engine.sql.lower import Lowering
from tests.unit.spark.samples import DATES, NUMBERS, OTHERS, TEXTS, TOKENS, lit

V = Variable("c")
INTEGERS = [t for t in NUMBERS if t.endswith("integer>") and len(t) < 60 and t[1] not in 'x"']
DECIMALS = [*(lit(f"{n / 100}", "decimal") for n in range(-300, 900, 37)), lit("1.0", "decimal"), lit("1", "decimal"),
            lit("0.000001", "decimal")]
DOUBLES = [lit(f"{n / 7}", "double") for n in range(-30, 60, 7)] + [lit("1e16", "double"), lit("-1e16", "double"), lit("0.1", "double")]
POOLS: dict[str, list[str | None]] = {
    "integers": [*INTEGERS], "decimals": [*DECIMALS], "exact": [*INTEGERS[:8], *DECIMALS], "doubles": [*DOUBLES], "texts": [*TEXTS],
    "dates": [*DATES[:7]], "terms": ["<http://ex.org/a>", "<http://ex.org/a/b>", "<http://ex.org/a!>", "_:b", "_:a", *TEXTS],
    "numbers": [*NUMBERS], "all": TOKENS, "others": [*OTHERS]}
_ANY = {"COUNT", "SAMPLE", "GROUP_CONCAT", "MIN", "MAX"}
ALWAYS = {"integers": {*_ANY, "SUM", "AVG"}, "decimals": {*_ANY, "SUM", "AVG"}, "exact": {*_ANY, "SUM", "AVG"},
          "doubles": {*_ANY, "SUM", "AVG"}, "texts": _ANY, "dates": _ANY, "terms": _ANY}
"""By pool, the aggregates that SQL decides for every group."""


def gathered(dialect: Dialect, call: Aggregate, name: str, kinds: Kinds = ANY_KIND) -> Gathered:
    """The SQL of an aggregate over the typed column ``c`` of these kinds."""
    lowering = Lowering(dialect, "q", 0)
    match call.function:
        case "SUM" | "AVG":
            return aggregates.total(dialect, call, "c", name, kinds, lambda operator, args: lowering.apply(operator, args, None))
        case "MIN" | "MAX":
            return aggregates.extreme(dialect, call, "c", name, kinds, certain=False)
        case "COUNT":
            return aggregates.count(call, "c", name)
        case "SAMPLE":
            return aggregates.sample("c", name, certain=False)
    return aggregates.group_concat(dialect, call, "c", name)
