"""The static graphs at the pump: their facts, their versions, and a Parquet file of each so that the log need not be read again.

A file is on disk, whole, before the result log names it. One that cannot be read at a start is set aside: the graph is lost until it is
put again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.facts import FACTS
from engine.files import remove, whole_file
from engine.runtime.rows import Control, facts_of, short_name
from engine.runtime.set_aside import SetAside


class GraphStore:
    """`tables` by IRI in the columns of FACTS, `versions` the position of the record that set each, `counts` how many there were.
    `lost` has the graphs whose files cannot be used, with the reason."""

    def __init__(self, folder: Path | None, aside: SetAside | None = None) -> None:
        """`folder` None keeps nothing on disk (a replay)."""
        self.lost: dict[str, str] = {}
        self._aside = aside or SetAside((folder or Path()).parent / "set-aside")
        self.tables: dict[str, pa.Table] = {}
        self.versions: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._folder = folder
        self._stale: list[Path] = []
        self._unwritten: dict[int, pa.Table] = {}

    def apply(self, control: Control, segment: pa.Table) -> dict[str, Any] | None:
        """Take over the version whose rows `segment` begins with. Gives what the result log must know of it; None if it is a removal."""
        iri = control.stream
        self.lost.pop(iri, None)
        if iri in self.versions:
            self._stale.append(self._file(self.versions.pop(iri)))
        if control.payload.get("removed", False):
            self.tables.pop(iri, None)
            self.counts.pop(iri, None)
            return None
        self.tables[iri] = static_facts(segment.filter(pc.equal(segment["position"], control.position)))
        self.versions[iri] = control.position
        self.counts[iri] = self.counts.get(iri, 0) + 1
        self._unwritten[control.position] = self.tables[iri]
        return {"version": control.position, "count": self.counts[iri], "triples": self.tables[iri].num_rows}

    def restore(self, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        """Read the graphs that the result log knows."""
        for iri, definition in definitions.items():
            self.counts[iri] = definition["count"]
            path = self._file(definition["version"])
            try:
                self.tables[iri] = pq.read_table(path).select(FACTS.names).cast(FACTS)
                self.versions[iri] = definition["version"]
            except (pa.ArrowException, OSError, KeyError) as error:
                self.lost[iri] = f"the file {path} of the graph <{iri}> cannot be read: {error}"
                self._aside.move(path, self.lost[iri])

    def save(self) -> None:
        """Write the files of new versions: on disk when this returns, which the result log must wait for. May be tried again."""
        for version, table in list(self._unwritten.items()):
            if self._folder is not None:
                path = self._file(version)
                with whole_file(path, path.with_suffix(".part")) as sink:
                    pq.write_table(table, sink)
            del self._unwritten[version]

    def committed(self) -> None:
        """The versions replaced are no longer needed."""
        for path in self._stale:
            remove(path)
        self._stale.clear()

    def _file(self, version: int) -> Path:
        return (self._folder or Path()) / f"{version:016d}.parquet"


def static_facts(rows: pa.Table) -> pa.Table:
    """The facts of a version from its rows in the log: without a position."""
    facts = facts_of(rows)
    return facts.set_column(0, facts.schema.field(0), pa.array(np.zeros(facts.num_rows, np.int64))).combine_chunks()


def graph_mark(iri: str, count: int) -> str:
    """What the blank nodes of a graph's `count`-th version are marked with."""
    return f"g{short_name(iri)}.{count}"
