"""Formats of one thing per line: JSON lines, timed N-Triples (``ms<TAB>triple``), N-Quads and N-Triples with bad lines left out."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import RdfFormat, parse

from engine.records import Triple
from engine.timeline import is_moment
from server.formats.bodies import check_json_nesting
from server.formats.items import Reading, located
from server.formats.languages import check_languages
from server.formats.syntax import from_parser, syntax_problem
from server.formats.terms import tokens
from server.problems import Problem


def read_json_lines(body: bytes, reading: Reading) -> None:
    """One JSON-LD item per line; blank lines are skipped."""
    limits = reading.reader.limits
    for number, line in _lines(body):
        try:
            if len(line) > limits.item_bytes:
                raise Problem("item-too-large", f"An item may have {limits.item_bytes} bytes.",
                              extra={"limit": limits.item_bytes, "actual": len(line)})
            check_json_nesting(line, limits.nesting)
            check_languages(line)
            quads = list(tokens(parse(line, RdfFormat.JSON_LD), _cap(line, limits.literal)))
        except SyntaxError as error:
            reading.reject(located(from_parser(error, body, line_offset=number - 1), None, number))
        except Problem as problem:
            reading.reject(located(problem, None, number))
        else:
            reading.add_dataset(quads, line=number, measured=True)


def read_timed(body: bytes, reading: Reading) -> None:
    """Lines ``ms<TAB>triple``: each is an item, whatever body it comes in; blank nodes are shared by the lines of one ms."""
    reading.add_lines(_timed_triples(body, reading), len(body) <= reading.reader.limits.item_bytes)


def read_line_by_line(body: bytes, format_: RdfFormat, reading: Reading) -> list[tuple[str | None, Triple]]:
    """The quads of N-Quads or N-Triples; each bad line is left out with its own error."""
    quads: list[tuple[str | None, Triple]] = []
    for number, line in _lines(body):
        try:
            quads += tokens(parse(line, format_), _cap(line, reading.reader.limits.literal))
        except SyntaxError as error:
            reading.reject(from_parser(error, body, line_offset=number - 1))
        except Problem as problem:
            reading.reject(located(problem, None, number))
    return quads


def _timed_triples(body: bytes, reading: Reading) -> Iterator[tuple[int, int, Triple]]:
    """(number, ms, triple) of each line. The triples are parsed together, which is several times as fast as line by line."""
    try:
        numbers: list[int] = []
        times: list[int] = []
        texts: list[bytes] = []
        if has_odd_line_ends(body):
            raise ValueError("a line may hold several triples")
        for number, line in enumerate(body.split(b"\n"), 1):
            before, tab, text = line.partition(b"\t")
            if tab:
                times.append(int(before))
                numbers.append(number)
            elif line.strip():
                raise ValueError("no tab")
            texts.append(text)
        triples = [triple for _, triple in tokens(parse(b"\n".join(texts), RdfFormat.N_TRIPLES),
                                                  _cap(body, reading.reader.limits.literal))]
        if len(triples) != len(times) or (times and not (is_moment(min(times)) and is_moment(max(times)))):
            raise ValueError("not one triple per line")
    except (SyntaxError, ValueError, Problem):
        return _timed_line_by_line(body, reading)
    return zip(numbers, times, triples)


def has_odd_line_ends(body: bytes) -> bool:
    """Whether there is a CR without LF: the parser of triples takes it for the end of a line, a body of lines does not."""
    return b"\r" in body and body.count(b"\r") != body.count(b"\r\n")


def _timed_line_by_line(body: bytes, reading: Reading) -> Iterator[tuple[int, int, Triple]]:
    """As `_timed_triples`, finding the place of each error."""
    for number, line in _lines(body):
        try:
            yield number, *_timed_line(body, number, line, reading.reader.limits.literal)
        except Problem as problem:
            reading.reject(located(problem, None, number))


def _timed_line(body: bytes, number: int, line: bytes, literal: int) -> tuple[int, Triple]:
    before, tab, text = line.partition(b"\t")
    try:
        ms = int(before)
        if not tab:
            raise ValueError
    except ValueError:
        raise syntax_problem("Expected a time in ms, a tab and a triple.", body, number, 1, number, len(before) + 1) from None
    if not is_moment(ms):
        raise syntax_problem("The time is not within the years 1 to 9999.", body, number, 1, number, len(before) + 1)
    try:
        triples = [triple for _, triple in tokens(parse(text, RdfFormat.N_TRIPLES), _cap(text, literal))]
    except SyntaxError as error:
        raise from_parser(error, body, line_offset=number - 1, column_offset=len(before) + 1) from error
    if len(triples) != 1:
        raise syntax_problem(f"Expected one triple after the time, not {len(triples)}.", body, number, len(before) + 2)
    return ms, triples[0]


def _lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip())


def _cap(text: bytes, literal: int) -> int | None:
    return literal if len(text) > literal else None
