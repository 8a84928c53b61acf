"""Records as rows of the input log, as a test writes them down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from engine.records import (End, Event, GraphVersion, Idle, Mark, Pause, Record, Register, Resume, RulesVersion, Unregister,
                            Verdict)
from engine.runtime.rows import ROWS, Control, Kind, control_rows, graph_rows, prepare, verdict_payload


def encode(records: Iterable[Record]) -> pa.Table:
    """The rows of a sequence of records, in order, positions and blank nodes as they are."""
    return pa.concat_tables([ROWS.empty_table(), *(_encode_run(run) for run in _runs(records))]).combine_chunks()


def _runs(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Runs of events of one stream, and single other records."""
    run: list[Record] = []
    for record in records:
        if run and not (isinstance(record, Event) and isinstance(run[0], Event) and record.stream == run[0].stream):
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def _encode_run(run: Sequence[Record]) -> pa.Table:
    if isinstance(run[0], Event):
        return _encode_events([record for record in run if isinstance(record, Event)])
    match run[0]:
        case Mark(position=position, stream=stream, watermark=watermark):
            return control_rows(Control(position, Kind.MARK, stream, watermark, {}))
        case Idle(position=position, stream=stream, watermark=watermark):
            return control_rows(Control(position, Kind.IDLE, stream, watermark, {}))
        case Register(position=position, query=query, text=text, since=since, stream=stream, media=media):
            payload = {"text": text, "since": since, "stream": stream} | ({} if media is None else {"media": media})
            return control_rows(Control(position, Kind.REGISTER, query, None, payload))
        case Unregister(position=position, query=query):
            return control_rows(Control(position, Kind.UNREGISTER, query, None, {}))
        case Pause(position=position, query=query):
            return control_rows(Control(position, Kind.PAUSE, query, None, {}))
        case Resume(position=position, query=query, backlog=backlog):
            return control_rows(Control(position, Kind.RESUME, query, None, {"backlog": backlog}))
        case GraphVersion(position=position, graph=graph, triples=triples):
            return graph_rows(position, graph, triples)
        case RulesVersion(position=position, name=name, media=media, text=text):
            return control_rows(Control(position, Kind.RULES, name, None, {"media": media, "text": text}))
        case Verdict(position=position, query=query):
            return control_rows(Control(position, Kind.VERDICT, query, None, verdict_payload(run[0])))
        case End(position=position):
            return control_rows(Control(position, Kind.END, "", None, {}))
    raise TypeError(f"not a record: {run[0]!r}")


def _encode_events(events: Sequence[Event]) -> pa.Table:
    prepared = prepare([(event.t, event.graph, event.triples) for event in events])
    item = prepared.table["item"].to_numpy()
    positions, watermarks = (np.fromiter(values, np.int64, len(events))
                             for values in ((e.position for e in events), (e.watermark for e in events)))
    table, count = prepared.table, prepared.table.num_rows
    return pa.table([pa.array(positions[item]), table["row"], pa.repeat(pa.scalar(int(Kind.EVENT), pa.int8()), count),
                     pa.repeat(events[0].stream, count), pa.array(prepared.times[item]), *(table[name] for name in ROWS.names[5:12]),
                     pa.array(watermarks[item]), pa.nulls(count, pa.string())], schema=ROWS)
