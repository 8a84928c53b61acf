"""``thalweg why``: the proofs of a row, of a replay of recorded streams or of a running server's result."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.client import HTTPException
from typing import TextIO
from urllib.parse import quote, urlencode

from engine.runtime.batch import Executor
from engine.runtime.place import Place, executor_at
from engine.runtime.replay import recorded_evidence, with_rules
from server.formats.media import JSON, TEXT
from server.formats.proof_text import as_text
from server.offline import Files, chosen, told
from server.problems import dumps
from server.why import explained

_TIMEOUT_S = 120


def prove(given: argparse.Namespace, out: TextIO, executor: Callable[[Place], AbstractContextManager[Executor]] = executor_at) -> int:
    """Replay the recordings, then prove a row of the result at ``--at``; the exit status."""
    def work() -> None:
        files = Files.of(given)
        queries = with_rules(files.queries, files.rules)
        name = given.name or (next(iter(queries)) if len(queries) == 1 else "")
        if name not in queries:
            raise ValueError(f"--name must be one of {', '.join(queries)}.")
        streams = files.streams()
        place = chosen(given, files, streams)
        with executor(place) as used:
            seen = recorded_evidence(queries, streams, files.graphs, used, files.rule_sets, name, given.at, given.ceased)
        found = {**explained(seen, given.row, given.max, given.mode), "executor": place.name}
        print(as_text(found) if given.format == "text" else dumps(found).decode(), end="" if given.format == "text" else "\n", file=out)
    return told(work)


def ask(given: argparse.Namespace, out: TextIO) -> int:
    """Ask a server; the exit status."""
    query = f"{given.url.rstrip('/')}/queries/{quote(given.name, safe='')}"
    try:
        found = given.result or _last(query)
        if found == "none":
            return _told(f"thalweg: The query {given.name!r} has no result yet.")
        wish = urlencode({"row": given.row, "max": given.max, "mode": given.mode})
        media = TEXT if given.format == "text" else JSON
        print(_read(f"{query}/results/{quote(found, safe='')}/why?{wish}", media), end="", file=out)
    except urllib.error.HTTPError as refusal:
        return _told(refusal.read().decode("utf-8", "replace").rstrip("\n") or f"thalweg: {given.url} answers {refusal}.")
    except (OSError, ValueError, HTTPException) as error:
        return _told(f"thalweg: {given.url} does not answer: {error}")
    return 0


def _told(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


def _last(query: str) -> str:
    """The id of a query's last result; ``none`` where it has none. An answer to HEAD could not say what is wrong, so the query itself
    is asked for before."""
    _read(query, TEXT)
    with urllib.request.urlopen(urllib.request.Request(f"{query}/results", method="HEAD"), timeout=_TIMEOUT_S) as reply:
        found = reply.headers["RSP-Event-Id"]
    if found is None:
        raise ValueError("it is no Thalweg server")
    return str(found)


def _read(url: str, media: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": media}), timeout=_TIMEOUT_S) as reply:
        return str(reply.read().decode())
