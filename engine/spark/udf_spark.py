"""The functions of worker/functions.py as Arrow (pandas) UDFs of a Spark session."""

from typing import Any, cast

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

from engine.functions.compare import order_key
from engine.worker.functions import aggregate_tokens, over_rows


def _over_rows(codes: pd.Series, ticks: pd.Series, tokens: tuple[pd.Series, ...], truth: bool) -> pd.Series:
    if not len(codes):
        return pd.Series([], dtype=object)
    rows = zip(*(t.tolist() for t in tokens)) if tokens else iter([()] * len(codes))
    return pd.Series(over_rows(codes.iloc[0], ticks.tolist(), rows, truth), dtype=object)


def tw_eval(codes: pd.Series, ticks: pd.Series, *tokens: pd.Series) -> pd.Series:
    """The value of an expression as tokens; a series for each of its variables."""
    return _over_rows(codes, ticks, tokens, False)


def tw_test(codes: pd.Series, ticks: pd.Series, *tokens: pd.Series) -> pd.Series:
    return _over_rows(codes, ticks, tokens, True)


def tw_key(tokens: pd.Series) -> pd.Series:
    return pd.Series([order_key(t) for t in tokens.tolist()], dtype=object)


def tw_agg(codes: pd.Series, groups: pd.Series) -> pd.Series:
    """An aggregate of each group, given the array of its tokens."""
    values = zip(codes.tolist(), groups.tolist())
    return pd.Series([aggregate_tokens(code, [] if group is None else list(group)) for code, group in values], dtype=object)


def register_spark(spark: SparkSession) -> None:
    """Make the functions known to a Spark session."""
    make = cast(Any, pandas_udf)
    for function, result in ((tw_eval, "string"), (tw_test, "boolean"), (tw_key, "string"), (tw_agg, "string")):
        spark.udf.register(function.__name__, make(function, returnType=result))
