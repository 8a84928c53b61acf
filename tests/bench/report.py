"""What a run prints and writes: a table in Markdown, and JSON with the machine and all details."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.figures import Figure

_HEADINGS = ("benchmark", "figure", "value", "unit", "target", "met")


def machine() -> dict[str, Any]:
    """Where the figures were measured."""
    return {"cores": len(os.sched_getaffinity(0)), "processor": _processor(), "memoryGb": round(_memory_gb(), 1),
            "system": platform.platform(), "python": platform.python_version(), "spark": version("pyspark"),
            "duckdb": version("duckdb"), "pyarrow": version("pyarrow")}


def table(results: Mapping[str, Sequence[Figure]]) -> str:
    """The figures of all benchmarks, the columns aligned."""
    lines = [(name, figure.name, _number(figure), figure.unit, figure.target, _met(figure)) for name, figures in results.items()
             for figure in figures]
    rows = [_HEADINGS, *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    shown = ["| " + " | ".join(_padded(row, widths)) + " |" for row in rows]
    return "\n".join([shown[0], "| " + " | ".join("-" * width for width in widths) + " |", *shown[1:]])


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.rjust(width) if heading == "value" else cell.ljust(width) for heading, cell, width in zip(_HEADINGS, row, widths)]


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write the results as JSON."""
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _number(figure: Figure) -> str:
    if figure.unit == "yes/no":
        return "yes" if figure.value else "no"
    return f"{figure.value:,.1f}".removesuffix(".0")


def _met(figure: Figure) -> str:
    return "" if figure.met is None else "yes" if figure.met else "NO"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
