"""An engine in a process of its own, to be killed: one JSON command a line on standard input, one answer a line on standard output.

``python -m tests.runtime.host FOLDER (memory|spark) [SETTINGS]``, the settings as JSON. Commands: ``["stream", name, descriptor]``,
``["register", text]`` or of a program ``["register", text, name, media]``, ``["push", name, key, [[t, [[s, p, o], ...]], ...]]``,
``["graph", iri, triples]``, ``["rules", name, text]`` with a media type behind it if it is not RIF, ``["state", query, state, resume]``,
``["settle"]`` (answered when the pump, and the lane beside it, have processed all that was pushed).
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from engine.runtime.backend import Backend
from engine.runtime.resources import Item
from engine.runtime.service import Engine
from engine.runtime.settings import Settings
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.unit.runtime.memory_backend import MemoryBackend
from tests.unit.runtime.settled import settle
from tests.waiting import DEADLINE_S, wait_until


def main(folder: str, evaluator: str, more: str = "{}") -> None:
    settings = Settings(data=Path(folder), warm_up=False, archive_files=8, commit_interval_ms=2, **json.loads(more))
    backend: Backend = MemoryBackend(settings) if evaluator == "memory" else Backend(settings)
    engine = Engine(settings, parse, backend=backend, parse_rules=parse_rules)
    started = threading.Event()
    engine.subscribe(lambda notice: started.set() if engine.state != "starting" else None)
    engine.start()
    started.wait()
    print(json.dumps(engine.state if engine.ready else engine.progress), flush=True)
    for line in sys.stdin:
        print(json.dumps(carry_out(engine, *json.loads(line))), flush=True)
    engine.stop()


def carry_out(engine: Engine, command: str, *args: Any) -> Any:
    match command, args:
        case "stream", (name, descriptor):
            return engine.put_stream(name, descriptor)[1]
        case "graph", (iri, triples):
            return engine.put_graph(iri, [(s, p, o) for s, p, o in triples])[1]
        case "rules", (name, text, *media):
            return engine.put_rules(name, media[0] if media else "text/x-rif-ps", text)[1]
        case "register", (text,):
            return engine.register(text)[1]
        case "register", (text, name, media):
            return engine.register(text, name, {"media": media})[1]
        case "state", (name, state, *resume):
            return engine.patch_query(name, state, *resume).state
        case "push", (name, key, items):
            given = [Item(t, None, tuple((s, p, o) for s, p, o in triples)) for t, triples in items]
            return engine.push(name, given, idempotency_key=key).to_json()["accepted"]
        case "settle", ():
            settle(engine, 60)
            wait_until(lambda: not any(seen.beside or seen.behind for seen in engine._machine.snapshot.queries.values()), DEADLINE_S)
            return 0
    raise ValueError(f"no command {command!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
