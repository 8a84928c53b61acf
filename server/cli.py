"""The command ``thalweg``: ``serve`` runs the server, ``run`` replays recorded streams through queries, ``why`` proves answers,
``executor-env`` packs what a cluster's executors need."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.execution.compiled import STAGES
from engine.plan.graphs import AUTO, WAYS
from engine.runtime.place import PROCESS_TRIPLES
from engine.spark.settings import master_of, shards_of
from grammar.rule_sets import RULE_SET_EXTENSIONS, TIMED_EXTENSIONS
from server import package_version
from server.formats.values import count, moment
from server.guard import origin_of
from server.limits import Limits

Value = TypeVar("Value")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; the exit status."""
    given = _parser().parse_args(arguments)
    return int(given.do(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("thalweg", description="Continuous SPARQL queries with reasoning over RDF streams.",
                                     epilog="Exit status: 0 done, 1 a mistake in a text, a file or the data, 2 in the command line.")
    parser.add_argument("--version", action="version", version=f"thalweg {package_version('thalweg') or '(not installed)'}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _serve_arguments(commands.add_parser("serve", help="serve the HTTP interface and the console"))
    _run_arguments(commands.add_parser("run", help="replay recorded streams through queries, as fast as they can be read"))
    _why_arguments(commands.add_parser("why", help="prove a row of a result: rules, bindings, down to what was pushed"))
    pack = commands.add_parser("executor-env", help="pack the Python packages that the executors of a Spark cluster need")
    pack.add_argument("file", type=_read_by(_archive), metavar="FILE.tar.gz", help="the archive, for THALWEG_EXECUTOR_ENV")
    pack.set_defaults(do=_pack)
    return parser


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on; loopback only (default: %(default)s)")
    add("--port", type=_read_by(count(65_535)), default=8175, help="port, 0 for any free one (default: %(default)s)")
    add("--data", type=Path, default=Path(".thalweg"), metavar="DIR", help="folder of logs and definitions (default: %(default)s)")
    add("--demo", action="store_true", help="load and feed the weather demo")
    add("--base-path", default="", metavar="/PATH", help="serve below this path")
    add("--base-url", metavar="URL", help="how the server names itself in IRIs (default: http://localhost:PORT)")
    add("--allow-host", action="append", default=[], metavar="NAME", help="answer to this Host name too (again for more)")
    add("--allow-origin", action="append", default=[], type=_read_by(origin_of), metavar="ORIGIN",
        help="pages of this origin may read, feeds included: https://board.example.org (again for more)")
    add("--limit", action="append", default=[], type=_limit, metavar="NAME=VALUE", help="change a limit shown at /info")
    add("--paused", action="store_true", help="start with all queries paused; let them go on one by one with PATCH")
    add("--workers", type=int, default=1, help="must be 1: one process owns Spark and the log")
    add("--master", type=_read_by(master_of),
        help="Spark master: local[N], N threads, or spark://HOST:PORT (default: local[*], all processors, or THALWEG_MASTER)")
    add("--kafka", action="append", default=[], type=_read_by(_cluster), metavar="HOST:PORT[,HOST:PORT...][=FILE]",
        help="let streams be read from topics there; FILE has the client's properties, such as those of security (again for more)")
    add("--memory", help="memory of Spark's driver, such as 2g")
    add("--shards", type=_read_by(shards_of), metavar="N",
        help="share windows out among N of Spark's workers (default: 1, or THALWEG_SHARDS)")
    add("--executor", choices=("sql", "local"), help="force one executor (tests and benchmarks)")
    add("--strategy", choices=("recompute", "incremental"), help="force one strategy (tests and benchmarks)")
    add("--graphs", choices=(AUTO, *WAYS), default=AUTO,
        help="how closures of property paths are found where a query does not say it (default: %(default)s)")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="warning")
    add("--log-format", choices=("text", "json"), default="text")
    parser.set_defaults(do=_serve)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", type=Path, nargs="+", help="file with a statement, - for standard input; one may read what another makes. Or one rule "
        f"program with a time of its own: {', '.join(TIMED_EXTENSIONS)}")
    add("--facts", action="append", default=[], type=Path, metavar="FILE",
        help="facts of a rule program, one a line: P(a)@[1,3) (again for more)")
    add("--stream", action="append", default=[], metavar="IRI=FILE",
        help="a recorded stream: TriG, N-Quads, JSON-LD lines or ms<TAB>triple lines, .gz too (again for more)")
    add("--graph", action="append", default=[], metavar="[IRI=]FILE",
        help="a static graph; without IRI it is the one that the query names, or background for its rules")
    add("--rules", action="append", default=[], metavar="NAME[=FILE]",
        help=f"as USING RULES in the text; with FILE ({', '.join(RULE_SET_EXTENSIONS)}) the rule set that the text, or else this "
        "option, uses")
    add("--format", choices=("jsonl", "csv", "table", "facts"), default="jsonl",
        help="default: %(default)s; of a rule program jsonl or facts: P(a)@3, one a line")
    add("--derived", metavar="P,Q", help="of a rule program: these predicates only, of those that its rules derive")
    add("--until", type=_read_by(moment), metavar="TIME",
        help="of a rule program: up to then, in milliseconds or an xsd:dateTime (default: as far as its facts lead)")
    add("--explain", choices=STAGES, metavar="STAGE", help=f"show the plan instead: {', '.join(STAGES)}")
    add("--master", type=_read_by(master_of), help="evaluate on Spark there, such as local[2] (default: THALWEG_MASTER; else in "
        f"this process, above {PROCESS_TRIPLES} triples on Spark)")
    parser.set_defaults(do=_run)


def _why_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", type=Path, nargs="*", help="files with statements, or a rule program with a time of its own; none with --url")
    add("--fact", metavar="FACT", help="of a rule program: the fact to prove, P(a)@3, P(a)@[1,3); without @ where it first holds")
    add("--facts", action="append", default=[], type=Path, metavar="FILE", help="facts of a rule program, as for run")
    add("--stream", action="append", default=[], metavar="IRI=FILE", help="a recorded stream, as for run")
    add("--graph", action="append", default=[], metavar="[IRI=]FILE", help="a static graph, as for run")
    add("--rules", action="append", default=[], metavar="NAME[=FILE]", help="rules of all statements, or rule sets, as for run")
    add("--at", type=_read_by(moment), metavar="TIME", help="the evaluation time: milliseconds, or an xsd:dateTime")
    add("--url", help="ask this server instead: http://localhost:8175")
    add("--name", help="the query's name; may be left out where there is one file")
    add("--result", metavar="ID", help="the id of a server's result, such as q1c1-7 (default: the last one)")
    add("--row", type=_read_by(count(1 << 31)), default=0, help="which row, counted from 0 (default: %(default)s)")
    add("--max", type=_read_by(count(1 << 31, 1)), default=1, help="how many proofs at most (default: %(default)s)")
    add("--ceased", action="store_true", help="of a rule program with a window: a row of stream N, what ceases at --at")
    add("--mode", choices=("full", "delta"), default="full", help="count the rows of the whole relation, or of what ISTREAM adds")
    add("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    add("--master", type=_read_by(master_of), help="evaluate on Spark there, as for run")
    parser.set_defaults(do=_why)


def _cluster(text: str) -> tuple[str, Path | None]:
    from engine.runtime.topics import servers_of

    servers, _, file = text.partition("=")
    if file and not Path(file).is_file():
        raise ValueError(f"{file} is no file")
    return servers_of(servers), Path(file).absolute() if file else None


def _archive(text: str) -> Path:
    from engine.spark.packages import SUFFIX

    if not text.endswith(SUFFIX):
        raise ValueError(f"expected a name that ends in {SUFFIX}")
    return Path(text)


def _pack(given: argparse.Namespace) -> int:
    from importlib.metadata import PackageNotFoundError

    from engine.spark.packages import NotPacked, fits, pack_packages

    try:
        packed = pack_packages(given.file)
    except PackageNotFoundError as failure:
        print(f"thalweg: {failure.name} is not installed in this environment, so it cannot be packed", file=sys.stderr)
        return 1
    except (NotPacked, OSError) as failure:
        print(f"thalweg: {given.file} cannot be made: {failure}", file=sys.stderr)
        return 1
    print(f"{given.file} ({given.file.stat().st_size / 1e6:.0f} MB, for {fits()}): {', '.join(packed)}")
    return 0


def _serve(given: argparse.Namespace) -> int:
    from server.serving import serve

    if given.workers != 1:
        return _complain("--workers must be 1: one process owns Spark, the input log and the result log.")
    try:
        return serve(given, Limits(**dict(given.limit)))
    except ValueError as error:
        return _complain(str(error))


def _run(given: argparse.Namespace) -> int:
    from server.offline import run
    from server.offline_programs import is_program, misused, run_program

    if complaint := misused(given):
        return _complain(complaint)
    return (run_program if is_program(given.query[0]) else run)(given, sys.stdout)


def _why(given: argparse.Namespace) -> int:
    from server import offline_why
    from server.offline_programs import is_program

    if given.url is not None:
        unused = (given.query or given.stream or given.graph or given.rules or given.at is not None or given.fact or given.facts
                  or given.master)
        if unused or given.name is None:
            return _complain("--url goes with --name and --result; the server has the query, its streams and graphs.")
        return offline_why.ask(given, sys.stdout)
    if given.query and is_program(given.query[0]):
        complaint = offline_why.misused(given)
        return _complain(complaint) if complaint else offline_why.prove_fact(given, sys.stdout)
    if given.fact is not None or given.facts:
        return _complain(f"--fact and --facts go with a rule program ({', '.join(TIMED_EXTENSIONS)}); of queries --at and --row say "
                         "what is to be proved.")
    if not given.query or given.at is None or given.result is not None:
        return _complain("name the files of the queries and the evaluation time with --at, or a server with --url.")
    return offline_why.prove(given, sys.stdout)


def _read_by(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """A reader of parameters for the command line."""
    def convert(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return convert


def _limit(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    kinds = {name: type(default) for name, default in Limits().as_json().items()}
    if not equals or name not in kinds:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE with one of {', '.join(kinds)}")
    return name, kinds[name](float(value))


def _complain(text: str) -> int:
    print(f"thalweg: {text}", file=sys.stderr)
    return 2
