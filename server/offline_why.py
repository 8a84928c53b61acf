"""``thalweg why``: the proofs of a row, of a replay of recorded streams or of a running server's result."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TextIO
from urllib.parse import quote, urlencode

from engine.runtime.batch import Executor
from engine.runtime.replay import recorded_evidence, spark_executor, with_rules
from server.formats.media import JSON, TEXT
from server.formats.proofs import as_text
from server.offline import Files, told
from server.problems import dumps
from server.why import explained

_TIMEOUT_S = 120


def prove(given: argparse.Namespace, out: TextIO, executor: Callable[[], AbstractContextManager[Executor]] = spark_executor) -> int:
    """Replay the recordings, then prove a row of the result at ``--at``; the exit status."""
    def work() -> None:
        files = Files.of(given)
        queries = with_rules(files.queries, files.rules)
        name = given.name or (next(iter(queries)) if len(queries) == 1 else "")
        if name not in queries:
            raise ValueError(f"--name must be one of {', '.join(queries)}.")
        with executor() as used:
            seen = recorded_evidence(queries, files.streams(), files.graphs, used, files.rule_sets, name, given.at)
        found = explained(seen, given.row, given.max, given.mode)
        print(as_text(found) if given.format == "text" else dumps(found).decode(), end="" if given.format == "text" else "\n", file=out)
    return told(work)


def ask(given: argparse.Namespace, out: TextIO) -> int:
    """Ask a server; the exit status."""
    results = f"{given.url.rstrip('/')}/queries/{quote(given.name, safe='')}/results"
    try:
        found = given.result or _last(results)
        wish = urlencode({"row": given.row, "max": given.max, "mode": given.mode})
        print(_read(f"{results}/{quote(found, safe='')}/why?{wish}", TEXT if given.format == "text" else JSON), end="", file=out)
    except urllib.error.HTTPError as refusal:
        sys.stderr.write(refusal.read().decode())
        return 1
    except OSError as error:
        sys.stderr.write(f"thalweg: {given.url} does not answer: {error}\n")
        return 1
    return 0


def _last(results: str) -> str:
    """The id of a query's last result."""
    with urllib.request.urlopen(urllib.request.Request(results, method="HEAD"), timeout=_TIMEOUT_S) as reply:
        return str(reply.headers["RSP-Event-Id"])


def _read(url: str, media: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": media}), timeout=_TIMEOUT_S) as reply:
        return str(reply.read().decode())
