"""What the workers of an executor are brought of streams and static graphs: each row once, as long as one worker does all the work."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from weakref import ref

import pyarrow as pa

from engine.execution.content import StreamContent
from engine.worker.resident import Followed


class Following:
    """Remembers what was brought, by the name of the table in workers. It may be wrong: a worker that lacks something says so."""

    def __init__(self) -> None:
        self._brought: dict[str, tuple[str, int]] = {}
        self._graphs: dict[str, tuple[ref[pa.Table], str]] = {}
        self._versions = 0
        self._token = secrets.token_hex(4)      # workers may outlive an executor
        self._used: dict[str, frozenset[str]] = {}

    def stream(self, name: str, content: StreamContent) -> Followed:
        """The table of a stream."""
        return Followed(content.token, self._known(name, content.token), content.parts, content.rows, content.added_after, content.oldest)

    def lacking(self, name: str, content: StreamContent) -> int:
        """How many rows of a stream workers have not been brought."""
        return content.rows_after(self._known(name, content.token))

    def graph(self, name: str, table: pa.Table) -> Followed:
        """The table of a static graph: another version is another content."""
        known = self._graphs.get(name)
        if known is None or known[0]() is not table:
            self._versions += 1
            known = self._graphs[name] = ref(table), f"{self._token}-{self._versions}"
        return self._whole(name, known[1], table)

    def constants(self, name: str, table: pa.Table) -> Followed:
        """A table that its name tells from all others."""
        return self._whole(name, name, table)

    def _whole(self, name: str, token: str, table: pa.Table) -> Followed:
        return Followed(token, self._known(name, token), 1, table.num_rows, lambda part: table.slice(0, 0) if part else table)

    def _known(self, name: str, token: str) -> int:
        before, upto = self._brought.get(name, ("", 0))
        return upto if before == token else 0

    def use(self, query: str, names: frozenset[str]) -> None:
        """A query reads these tables."""
        self._used[query] = names

    @property
    def used(self) -> frozenset[str]:
        """The tables that some query reads."""
        return frozenset().union(*list(self._used.values()))

    def brought(self, tables: Mapping[str, Followed]) -> None:
        """Workers have these tables now."""
        self._brought |= {name: (table.token, table.upto) for name, table in tables.items()}

    def forget(self, query: str) -> None:
        """A query is gone."""
        self._used.pop(query, None)
        for name in self._brought.keys() - self.used:
            del self._brought[name]
            self._graphs.pop(name, None)
