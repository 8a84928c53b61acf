"""The streams of static/examples: ``python -m tests.bench.data NAME FILE [--size N] [--seed N]`` writes one, lines of ``ms <TAB> triple``.

Each is a pure function of its size and a seed. `thalweg run static/examples/offers.rifps --stream offers.nt` then shows the answers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

BEGIN_MS = 1_767_225_600_000
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
DECIMAL, INTEGER, DATE, DATE_TIME = (f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("decimal", "integer", "date", "dateTime"))

Item = tuple[int, list[str]]
"""A time (ms), and the triples that are told at it, in N-Triples."""

STREAMS = {"offers": "offers.Offers", "hurricane": "winds.Winds", "discussions": "posts.Posts"}


def spread(number: int, seed: int) -> int:
    """32 bits that look random (Murmur3's last step)."""
    mixed = (number * 0x9E3779B1 + seed * 0x85EBCA77) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return mixed ^ mixed >> 16


def stamp(ms: int) -> str:
    """A time in XSD's form."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timed(items: Iterable[Item]) -> Iterator[bytes]:
    """The items in ``text/x-timed-ntriples``, one after the other."""
    for t, triples in items:
        yield "".join(f"{t}\t{triple}\n" for triple in triples).encode()


def stream(name: str) -> Callable[..., Any]:
    """The generator of a stream: ``(size=..., seed=...).items()``."""
    module, _, kind = STREAMS[name].partition(".")
    made: Callable[..., Any] = getattr(import_module(f"tests.bench.{module}"), kind)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a stream."""
    parser = argparse.ArgumentParser("python -m tests.bench.data", description="Write a stream of static/examples.")
    parser.add_argument("name", choices=sorted(STREAMS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, help="how many offers, observations, or posts")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    more = {} if given.size is None else {"size": given.size}
    with given.file.open("wb") as file:
        file.writelines(timed(stream(given.name)(seed=given.seed, **more).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
