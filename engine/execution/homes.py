"""Chooses the shard for a query that is evaluated whole in one shard."""

from collections import Counter


class Homes:
    """Assigns each query one of so many shards. It stays there while it needs the same, because what is kept for it is there."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._found: dict[str, tuple[frozenset[str], int]] = {}

    def of(self, query: str, needs: frozenset[str]) -> int:
        """The shard of a query that `needs` some things, by their names: that of the first query which needs one of them too, so that it
        is made once, else the one with the fewest queries."""
        known = self._found.get(query)
        if known is None or known[0] != needs:
            self.forget(query)
            shared = next((shard for others, shard in self._found.values() if not others.isdisjoint(needs)), None)
            queries = Counter(shard for _, shard in self._found.values())
            fewest = min(range(self._shards), key=lambda shard: (queries[shard], shard))
            known = self._found[query] = needs, fewest if shared is None else shared
        return known[1]

    def forget(self, query: str) -> None:
        """The query is gone."""
        self._found.pop(query, None)
