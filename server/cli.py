"""The command ``thalweg``: ``serve`` runs the server, ``run`` replays recorded streams through queries."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from server.limits import Limits
from server.routes.info import package_version

EXPLAIN_STAGES = ("parsed", "validated", "rewritten", "logical", "spark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; the exit status."""
    given = _parser().parse_args(arguments)
    return int(given.do(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("thalweg", description="Continuous SPARQL queries with reasoning over RDF streams.")
    parser.add_argument("--version", action="version", version=f"thalweg {package_version('thalweg') or '(not installed)'}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _serve_arguments(commands.add_parser("serve", help="serve the HTTP interface and the console"))
    _run_arguments(commands.add_parser("run", help="replay recorded streams through queries, as fast as they can be read"))
    return parser


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on; loopback only (default: %(default)s)")
    add("--port", type=int, default=8175, help="port, 0 for any free one (default: %(default)s)")
    add("--data", type=Path, default=Path(".thalweg"), metavar="DIR", help="folder of logs and definitions (default: %(default)s)")
    add("--demo", action="store_true", help="load and feed the weather demo")
    add("--base-path", default="", metavar="/PATH", help="serve below this path")
    add("--base-url", metavar="URL", help="how the server names itself in IRIs (default: http://localhost:PORT)")
    add("--allow-host", action="append", default=[], metavar="NAME", help="answer to this Host name too (again for more)")
    add("--limit", action="append", default=[], type=_limit, metavar="NAME=VALUE", help="change a limit shown at /info")
    add("--workers", type=int, default=1, help="must be 1: one process owns Spark and the log")
    add("--master", help="Spark master (default: local[2], or THALWEG_MASTER)")
    add("--memory", help="memory of Spark's driver, such as 2g")
    add("--executor", choices=("sql", "local"), help="force one executor (tests and benchmarks)")
    add("--strategy", choices=("recompute", "incremental"), help="force one strategy (tests and benchmarks)")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="warning")
    add("--log-format", choices=("text", "json"), default="text")
    parser.set_defaults(do=_serve)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", type=Path, nargs="+", help="file with a statement, - for standard input; one may read what another makes")
    add("--stream", action="append", default=[], metavar="IRI=FILE",
        help="a recorded stream: TriG, N-Quads, JSON-LD lines or ms<TAB>triple lines, .gz too (again for more)")
    add("--graph", action="append", default=[], metavar="[IRI=]FILE",
        help="a static graph; without IRI it is the one that the query names, or background for its rules")
    add("--rules", action="append", default=[], metavar="NAME[=FILE]",
        help="as USING RULES in the text; with FILE (RIF-Core: .rifps, .rif) the rule set that the text, or else this option, uses")
    add("--format", choices=("jsonl", "csv", "table"), default="jsonl", help="default: %(default)s")
    add("--explain", choices=EXPLAIN_STAGES, metavar="STAGE", help=f"show the plan instead: {', '.join(EXPLAIN_STAGES)}")
    parser.set_defaults(do=_run)


def _serve(given: argparse.Namespace) -> int:
    from server.serve import serve

    if given.workers != 1:
        return _complain("--workers must be 1: one process owns Spark, the input log and the result log.")
    try:
        return serve(given, _with_limits(given.limit))
    except ValueError as error:
        return _complain(str(error))


def _run(given: argparse.Namespace) -> int:
    from server.offline import run

    return run(given, sys.stdout)


def _limit(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not equals or name not in {field.name for field in fields(Limits)}:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE with one of {', '.join(field.name for field in fields(Limits))}")
    return name, float(value)


def _with_limits(changes: Sequence[tuple[str, float]]) -> Limits:
    whole = {field.name for field in fields(Limits) if isinstance(getattr(Limits(), field.name), int)}
    values: dict[str, Any] = {name: int(value) if name in whole else value for name, value in changes}
    return Limits(**values)


def _complain(text: str) -> int:
    print(f"thalweg: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
