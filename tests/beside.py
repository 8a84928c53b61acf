"""Other queries beside those of a log, which share parts with them: the same texts, and such with other ranges and other constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, cycle, islice

from engine.ir.spans import DiagnosticError
from engine.records import Record, Register, RulesVersion
from tests.case_files import TIMED_MEDIA, parse

OTHER = "~"
FEW = 3
_PARTS = re.compile(r"""<[^>]*>|"[^"]*"|'[^']*'|\[[^\]]*\]|(?<![\w:.?$-])\d+(?![\w:.])""")
_NAMES = re.compile(r"(?<![\w<\":]):[a-z]\w*")
_RANGE = re.compile(r"(RANGE\s+\w*?)(\d+)", re.IGNORECASE)


def beside(records: Sequence[Record], others: int) -> list[Record]:
    """The records with so many more registrations, by turns of each query that is registered, right behind its own; their names have
    OTHER in them. Queries whose results are streams have none beside them, for a stream has one maker. Where rules have a time of their
    own there are at most FEW: each holds all that it needs, which takes seconds, and shares nothing."""
    first = {record.query: record for record in reversed(records) if isinstance(record, Register) and not _makes_stream(record)}
    if any(isinstance(record, RulesVersion | Register) and record.media in TIMED_MEDIA for record in records):
        others = min(others, FEW)
    extra: dict[str, list[Register]] = {query: [] for query in first}
    for number, query in enumerate(islice(cycle(first), others if first else 0)):
        extra[query].append(replace(first[query], query=f"{query}{OTHER}{number}", text=other(first[query].text, number)))
    found: list[Record] = []
    places: dict[int, int] = {}
    positions = count(1)
    for record in records:
        follow = extra[record.query] if isinstance(record, Register) and first.get(record.query) is record else []
        for one in (record, *follow):
            position = next(positions)
            places.setdefault(one.position, position)
            found.append(replace(one, position=position))
    return [replace(record, since=places[record.since]) if isinstance(record, Register) else record for record in found]


def other(text: str, number: int) -> str:
    """The text itself, or with windows twice as long, numbers greater by one or two, one of the prefixed names behind WHERE in the place of
    another, or all of that; the text itself where that is none."""
    def greater(part: re.Match[str]) -> str:
        return str(int(part[0]) + number % 3) if part[0].isdigit() else part[0]

    changed = _PARTS.sub(greater, text)
    if number % 2:
        changed = _RANGE.sub(lambda found: f"{found[1]}{2 * int(found[2])}", changed)
    head, where, pattern = changed.partition("WHERE")
    names = [found.span() for found in _NAMES.finditer(pattern)]
    if number >= 6 and names:
        (begin, end), (first, last) = names[number % len(names)], names[(number + 1) % len(names)]
        changed = f"{head}{where}{pattern[:begin]}{pattern[first:last]}{pattern[end:]}"
    try:
        parse(changed)
    except DiagnosticError:
        return text
    return changed


def _makes_stream(record: Register) -> bool:
    return record.stream is not None or record.media is None and parse(record.text).kind == "stream"
