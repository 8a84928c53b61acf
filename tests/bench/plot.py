"""``python -m tests.bench.plot RESULTS.json FILE.svg``: what it costs to follow what changes, as tables in Markdown and,
of a closure, as a plot.

The results are those of ``python -m tests.bench maintenance`` or ``change``. A plot needs the packages of the extra ``plot``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

WAYS = ("incremental", "recompute", "planned", "dred", "pyoxigraph")
DRAWN = {"incremental": "o-", "recompute": "s-", "dred": "^--", "pyoxigraph": "x:"}


def main(arguments: Sequence[str]) -> int:
    """Print the tables and write the plot of what is there."""
    source, target = map(Path, arguments)
    found = json.loads(source.read_text("utf-8"))["benchmarks"]
    if "maintenance" in found:
        rows = found["maintenance"]["details"]["maintenance"]
        print(table(rows))
        draw(rows, target)
    if "change" in found:
        print(changes(found["change"]["details"]["change"]))
    return 0


def changes(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each construct, with ms of the clock by share and way, and of processors behind them."""
    shares = list(dict.fromkeys(row["share"] for row in rows))
    heads = ["construct", "answers", *(f"{way}, {share:.1%}" for way in ("incremental", "recompute", "pyoxigraph") for share in shares)]
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " --: |" * (len(heads) - 1)]
    for construct in dict.fromkeys(row["construct"] for row in rows):
        own = {row["share"]: row for row in rows if row["construct"] == construct}
        cells = [f"{own[share][way]:,.0f} ({own[share][f'{way}Cpu']:,.0f})"
                 for way in ("incremental", "recompute", "pyoxigraph") for share in shares]
        lines.append("| " + " | ".join([construct, f"{own[shares[0]]['answers']:,}", *cells]) + " |")
    return "\n".join(lines)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each size and share, times in ms."""
    heads = ["triples", "changed", *WAYS, "recompute / incremental", "incremental / pyoxigraph", "planner's choice / better of both"]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --: |" * len(heads)]
    for row in rows:
        ratios = (row["recompute"] / row["incremental"], row["incremental"] / row["pyoxigraph"],
                  row[row["choice"]] / min(row["incremental"], row["recompute"]))
        cells = [f"{row['size']:,}", f"{row['share']:.1%}", *(f"{row[way]:,.0f}" if row[way] >= 10 else f"{row[way]:.1f}" for way in WAYS),
                 *(f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}" for ratio in ratios)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """A panel for each size, all with the same scale of times."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "thalweg"     # the same figures give the same file
    from matplotlib import pyplot
    panels = [(size, list(found)) for size, found in groupby(rows, lambda row: row["size"])]
    figure, axes = pyplot.subplots(1, len(panels), sharey=True, figsize=(4 * len(panels), 4), layout="constrained", squeeze=False)
    for axis, (size, found) in zip(axes[0], panels):
        for way, style in DRAWN.items():
            axis.plot([row["share"] * 100 for row in found], [row[way] for row in found], style, label=way, markersize=4)
        axis.set(title=f"{size:,} triples", xlabel="changed between evaluations, %", xscale="log", yscale="log")
        axis.set_xticks([row["share"] * 100 for row in found], [f"{row['share'] * 100:g}" for row in found])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("time of an evaluation, ms (median)")
    axes[0][0].legend()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
