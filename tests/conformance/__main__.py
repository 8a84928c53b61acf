"""Published test suites, case by case: ``python -m tests.conformance SUITE DIR [--executor NAME] [--only TEXT]``.

Prints each case that fails, is refused or has more to tell, closes with ``N passed, M failed, K skipped`` and exits with 1 if any failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance import csrbench, entailment, health, lars, lubm, owl2rl, rdf_mt, rif, sparql
from tests.conformance.executors import EXECUTORS
from tests.conformance.outcomes import Verdict
from tests.jvm import use_options

SUITES = {"csrbench": csrbench.run, "sparql": sparql.run, "health": health.run, "owl2rl": owl2rl.run,
          "entailment": entailment.run, "rif": rif.run, "lubm": lubm.run, "rdf-mt": rdf_mt.run, "lars": lars.run}


def main(arguments: list[str] | None = None) -> int:
    """Run one suite; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--executor", choices=sorted(EXECUTORS), default="spark")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    parser.add_argument("--verbose", action="store_true", help="name the cases that pass, too")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"not a folder: {options.folder}")
    use_options()
    counts = dict.fromkeys(Verdict, 0)
    with EXECUTORS[options.executor]() as answer:
        for outcome in SUITES[options.suite](options.folder, answer, options.only):
            counts[outcome.verdict] += 1
            if options.verbose or outcome.verdict is not Verdict.PASSED or outcome.reason:
                print(f"{outcome.verdict.value} {outcome.case}" + (f": {outcome.reason}" if outcome.reason else ""), flush=True)
    print(", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict))
    return 1 if counts[Verdict.FAILED] or not counts[Verdict.PASSED] else 0


if __name__ == "__main__":
    sys.exit(main())
