"""How the evaluations of a query are made: by which executor and strategy, in which form of the plan, and why; by the sizes of windows, and
by what earlier evaluations have shown.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from engine.execution.compiled import LOCAL_ROWS, RESIDENT_BYTES, Compiled, Form
from engine.execution.content import merge_estimates, table_estimate
from engine.execution.due import Due
from engine.execution.equality import EqualTerms
from engine.execution.kept import KeptClosures, QueryClosures
from engine.execution.plan_job import ExecutorName, Tasks
from engine.execution.shapes import Sharing
from engine.ir.statement import Program
from engine.ir.terms import SAME_AS
from engine.limits import LimitExceeded, Postponed
from engine.plan.graphs import WORDS
from engine.sql.sources import needed

StrategyName = Literal["recompute", "incremental"]

INCREMENTAL_ROWS = 20_000
MOST_OVER = 2           # after so many postponed evaluations in a row nothing is kept for a query
SHARED_BY = 4           # so many queries share what patterns find without their constants and filters
MOST_NEW = 0.25         # the share of a window that may be new at each evaluation, where what its patterns find is kept
KEPT_ROWS = 4_000       # above so many rows of windows closures are kept, if little changes (`_keeps`)
SHARD_ROWS = 20_000     # from so many rows of windows on a query is evaluated in shards, where there are several and it can be
CLOSED_SHARDS = 15      # so many times as many where it has closures: below 300,000 rows two shards gain nothing (docs/scale.md)
HELD = 8                # so many rows of a table take what one takes of which a closure is made (100 and some 900 bytes)
NO_LIMIT = 1 << 60
CLOSED_BYTES = 1_000    # of a worker's memory for each row of windows of which a closure is made, and for what follows (docs/scale.md)


@dataclass(frozen=True, slots=True)
class Choice:
    """How the evaluations of `due`, over so many `rows` of windows, are made: the form of the query that is run (`compiled`), its executor,
    strategy, and form of plan, and `why`. It compares by typed columns where it is `typed`. Its `closures` are kept, or made anew (None);
    those of a plan of Spark SQL by tasks `ahead` of it, or by rounds of Spark jobs."""

    due: Due
    compiled: Compiled
    executor: ExecutorName
    strategy: StrategyName
    form: Form
    why: str
    rows: int
    typed: bool
    closures: KeptClosures | None
    ahead: bool


class _Together(threading.local):
    """Of what a thread evaluates together now how many `users` each closure has, and which closures no shards make together."""

    def __init__(self) -> None:
        self.users: Counter[str] = Counter()
        self.undivided: set[str] = set()


class Choices:
    """Chooses; remembers what was chosen (`made`, by query) and what was too large."""

    def __init__(self, tasks: Tasks, closures: QueryClosures, *, force_executor: ExecutorName | None, force_strategy: StrategyName | None,
                 closed_rows: int | None, shard_rows: int, stays: bool, divides: bool, shared: Choices | None) -> None:
        """Closures of more than `closed_rows` (None: than a worker has memory for), or than are shipped, are made by rounds of Spark jobs;
        plans are evaluated in shards from `shard_rows` on, if it `divides` them. Whether tables stay in the workers of `tasks`. What it
        knows of queries beyond one evaluation is that of `shared`, too."""
        self._tasks, self.closures = tasks, closures
        self.force_executor, self.force_strategy = force_executor, force_strategy
        self.closed_rows = tasks.memory // CLOSED_BYTES if closed_rows is None else closed_rows
        if not stays:
            self.closed_rows = min(self.closed_rows, LOCAL_ROWS)
        self.shard_rows, self._stays, self._several = shard_rows, stays, divides and tasks.shards > 1
        self._lacks_shards = shared is not None and shared._several and not self._several
        self.made: dict[str, tuple[ExecutorName, StrategyName]] = {} if shared is None else shared.made
        self.too_large: set[str] = set() if shared is None else shared.too_large
        self._in_shards: dict[str, bool] = {}   # by query, whether it may be; known from its first evaluation over `shard_rows`
        self._over: dict[str, int] = {}     # how often in a row what is kept for a query was too much
        self.sharing, self._equal = Sharing(), EqualTerms()
        self._together = _Together()
        self._all_rules: set[str] = set() if shared is None else shared._all_rules  # queries that are evaluated under all rules from now on

    def begin(self, dues: Iterable[Due]) -> None:
        """Note what is evaluated together: a closure that queries share is made once, by shards together if all of these can be divided."""
        dues = list(dues)
        self._together.users = Counter(closed.name for due in dues for closed in due.compiled.closures)
        whole = [due for due in dues if due.compiled.closures and self._several
                 and self._is_large(sum(content.rows for content in due.streams.values())) and not self._can_be_divided(due)]
        self._together.undivided = {closed.name for due in whole for closed in due.compiled.closures if not closed.is_static}

    def _is_large(self, rows: int) -> bool:
        """Whether closures over so many rows of windows are worth being made by shards together."""
        return rows >= self.shard_rows * CLOSED_SHARDS

    def _can_be_divided(self, due: Due) -> bool:
        """Whether shards can make the closures of a query together, for all that is known of it."""
        try:
            found = due.compiled.in_shards
        except Exception:   # that query's failure, where its job is made
            return False
        return (found is not None and self._in_shards.get(due.query, True)
                and (found.under_all_rules is None or due.query not in self._all_rules))

    def _needs_all_rules(self, query: str, compiled: Compiled, alone: bool) -> bool:
        """Whether a query is evaluated under all rules, since it must be, or since others share its closures, if it does not evaluate them
        `alone` anyway. Backgrounds are under all rules, and shared."""
        shared = any(self._together.users[closed.name] > 1 for closed in compiled.closures if not closed.is_static)
        return query in self._all_rules or shared and not alone

    def of(self, due: Due) -> Choice:
        """How the evaluations that are due are made."""
        whole = due.compiled.under_all_rules or due.compiled    # a job that is made again may have the other
        ranges = needed(whole.statement.windows, due.evaluation)
        rows = sum(due.streams[iri].rows for iri in ranges)
        by_rounds = due.paths in ("sql", "graphframes") and bool(whole.text("sql", True).rounds)
        forced = self.force_executor or ("sql" if by_rounds else None)
        keeps = due.query not in self.too_large and forced != "sql" and self._keeps(due, whole.with_goal or whole, rows)
        shards = self._tasks.shards if self._divides(replace(due, compiled=whole), rows) else 1
        to_close = self._rows_to_close(due, ranges, rows) if whole.closures else rows
        most_closed = self.closed_rows * shards
        alone = keeps or forced == "sql" or to_close > most_closed or due.query in self.too_large
        compiled = whole if self._needs_all_rules(due.query, whole, alone) else whole.under_unique_names or whole
        due = replace(due, compiled=compiled)
        for each in (whole, compiled) if compiled is not whole else (whole,):
            each.adapt(rows, lambda: merge_estimates([*(content.estimate() for content in due.streams.values()),
                                                      *map(table_estimate, due.graphs.values())]))
        keeping = compiled.with_goal or compiled
        by_representatives = self._by_representatives(due, to_close, keeps)
        if by_representatives:
            assert compiled.by_representatives is not None
            keeps, compiled = False, compiled.by_representatives
            due = replace(due, compiled=compiled)
            self.closures.drop(due.query)
        counted, most = rows, self._most_rows(due)
        if not (self._stays or keeps or shards > 1):
            most = min(most, LOCAL_ROWS)
            counted = rows if rows <= most else self._shown(due, ranges)
        if compiled.closures and not keeps:
            counted, most = to_close, most_closed
        executor: ExecutorName = forced or ("local" if counted <= most and due.query not in self.too_large else "sql")
        closures = None
        if keeps and executor == "local":
            compiled, due = keeping, replace(due, compiled=keeping)
            closures = self.closures.of(due.query, due.compiled)
        typed = not compiled.undecided and not any(due.streams[iri].hard for iri in ranges)
        form: Form = "plain"
        if executor == "sql":
            why = self._why_sql(due, counted, most, by_rounds)
        else:
            form, why = self._sampling(due, rows)
        if by_representatives:
            why = by_representatives
        elif executor == "local" and not keeps and form != "shared" and self._divides(due, rows):
            assert compiled.in_shards is not None
            compiled = compiled.in_shards
            typed = typed and not compiled.undecided
            if compiled.under_all_rules is not None:    # so that it is seen where rules that were left out matter
                due = replace(due, compiled=compiled)
        together = any(closed.exchange for closed in compiled.closures)
        if form == "plain" and executor == "local" and compiled.closures and not by_representatives:
            if closures is not None:
                why = f"its closures are kept: {compiled.change_in_words}"
            else:
                by = " by shards together" if together else ""
                why = f"its closures are made anew{by}: {self._why_anew(keeping, rows)}"
                if not together and (apart := self._why_by_one(whole, due.query, rows)):
                    why += f"; by one shard, as {apart}"
        if compiled.under_all_rules is not None:
            needed_equal = "a term" if together else "a property or class of the query"
            why += f"; rules that need {needed_equal} to be equal to another term are left out"
        samples = form in ("sampled", "shared")
        strategy: StrategyName = "incremental" if samples or closures is not None and closures.seen >= 0 else "recompute"
        self.made[due.query] = executor, strategy
        if closures is not None:
            compiled = compiled.with_own_closures(closures.mark, static=False)
        elif executor == "sql" and compiled.closures:
            # Plans run side by side in one session, so the names of a query's closures end in its hash: its own may hold '-' and '.'.
            compiled = compiled.with_own_closures(hashlib.sha256(due.query.encode()).hexdigest()[:8], static=True)
        ahead = executor == "sql" and to_close <= self.closed_rows and due.query not in self.too_large
        return Choice(due, compiled, executor, strategy, form, why, rows, typed, closures, ahead)

    def keep_whole(self, query: str) -> None:
        """Shards have found more for a query than an answer may have: it is evaluated whole from now on."""
        self._in_shards[query] = False

    def use_all_rules(self, query: str) -> None:
        """A name of a query may be equal to another term: all rules matter from now on."""
        self._all_rules.add(query)

    def is_kept(self, query: str) -> None:
        """What is kept for a query was not too much."""
        self._over.pop(query, None)

    def was_over(self, query: str, failure: LimitExceeded | Postponed) -> None:
        """What is kept for a query needed more than an evaluation has, or more time than others wait."""
        self._over[query] = MOST_OVER if isinstance(failure, LimitExceeded) else self._over.get(query, 0) + 1

    def forget(self, query: str) -> None:
        """The query is gone."""
        self.made.pop(query, None)
        self.too_large.discard(query)
        self._over.pop(query, None)
        self._in_shards.pop(query, None)
        self._all_rules.discard(query)
        self._equal.forget(query)
        self.sharing.forget(query)

    def _rows_to_close(self, due: Due, ranges: Mapping[str, tuple[int, int]], rows: int) -> int:
        """Of how many rows closures are made, of so many that are held: where these are many, of those that windows show. The others, as
        there are where evaluations lag behind their streams, take memory only, in tables that stay."""
        if rows <= self.closed_rows:
            return rows
        shown = self._shown(due, ranges)
        return shown + (rows - shown) // HELD if self._stays else shown

    def _shown(self, due: Due, ranges: Mapping[str, tuple[int, int]]) -> int:
        """How many rows its windows show."""
        return sum(due.streams[iri].count_between(low, high) for iri, (low, high) in ranges.items())

    def _most_rows(self, due: Due) -> int:
        """The most rows over which tasks evaluate a query, by the memory for their tables. Whether one with closures can be divided is not
        asked here: that may take seconds."""
        several = self._several and not due.compiled.closures
        divided = several and due.compiled.in_shards is not None and self._in_shards.get(due.query, True)
        return self._tasks.memory // RESIDENT_BYTES * (self._tasks.shards if divided else 1)

    def _divides(self, due: Due, rows: int) -> bool:
        """Whether a plan is evaluated in shards: from some size on, so that its tables are not brought to others each time it changes."""
        if not self._several or due.derived is not None:
            return False
        if due.query not in self._in_shards and rows < self.shard_rows:
            return False
        if closed := due.compiled.closures:
            return self._is_large(rows) and all(one.name not in self._together.undivided for one in closed) and self._can_be_divided(due)
        return self._in_shards.setdefault(due.query, True) and due.compiled.in_shards is not None

    def _why_by_one(self, compiled: Compiled, query: str, rows: int) -> str:
        """Why shards do not make its closures together, where these are so large; empty where they are not."""
        if not (self._several or self._lacks_shards) or not self._is_large(rows):
            return ""
        if query in self._all_rules:
            return "a term was equal to another, or a literal to one of another datatype"
        if not self._in_shards.get(query, True):
            return "shards found more than an answer may have, or lost what they found"
        if compiled.in_shards is None:
            return "a rule has no variable that all its atoms have as subject or object, or a pattern cannot be divided"
        if self._lacks_shards:
            return "it is slow, and there are no slots for shards beside those of the others"
        return "another query that shares them cannot be divided"

    def _keeps(self, due: Due, keeping: Compiled, rows: int) -> bool:
        """Whether its closures with intervals are kept, in the form of the query that is best for that; a program's are."""
        if not keeping.keeps_closures:
            return False
        if self.force_strategy or due.query in self.closures or isinstance(due.compiled.statement.query, Program):
            return self.force_strategy != "recompute"
        # Closures are better made anew where more changes between evaluations than a tenth of a window of 10,000 rows, a third of 100,000,
        # three fifths of 1,000,000 (docs/maintenance.md).
        return rows > KEPT_ROWS and due.compiled.changing <= 0.25 * math.log10(rows / KEPT_ROWS)

    def _why_anew(self, keeping: Compiled, rows: int) -> str:
        """Why closures are not kept."""
        if self.force_strategy == "recompute":
            return "as all plans are"
        if not keeping.keeps_closures:
            return "they are of no kind that is kept"
        return keeping.change_in_words if rows > KEPT_ROWS else f"{rows} rows are soon evaluated anew"

    def _by_representatives(self, due: Due, rows: int, keeps: bool) -> str:
        """Why its closures are computed by representatives of equal terms, anew at each T; empty where the rules of equality are applied as
        they stand. Closures that are kept are given up for that where these rules would derive more than the windows have."""
        known = due.compiled.equality
        if due.compiled.by_representatives is None or rows > self.closed_rows or due.query in self.too_large:
            return ""
        statements = known.statements + sum(content.count(frozenset((SAME_AS,))) for content in due.streams.values())
        stated = f"{statements} statements of it in streams and graphs"
        if not keeps:
            why = stated if statements else "rules may derive it" if known.is_derived else ""
        else:
            derived = self._equal.derived(due, statements)
            why = f"of {stated} its rules would derive some {derived} facts" if derived > max(rows, KEPT_ROWS) else ""
        return f"owl:sameAs by representatives: {why}" if why else ""

    def _why_sql(self, due: Due, rows: int, most: int, by_rounds: bool) -> str:
        """Why a plan is one of Spark SQL: `most` rows are evaluated in tasks, closures of paths `by_rounds` are not."""
        if self.force_executor is not None:
            return "it is made to be one of Spark SQL"
        if by_rounds and due.paths is not None:
            return f"its paths are to be closed {WORDS[due.paths]}"
        if due.query in self.too_large:
            return "it needs more memory than a worker has"
        return f"{rows} rows are more than the {most} that a worker is given"

    def _sampling(self, due: Due, rows: int) -> tuple[Form, str]:
        """Whether what its patterns find is kept, and in which relations, and why: those that many queries share cost little, however few
        rows."""
        if not self._stays or self.force_strategy == "recompute":
            return "plain", "its windows are evaluated anew"
        if self._over.get(due.query, 0) >= MOST_OVER:
            return "plain", "what its patterns find needed more time or memory than an evaluation has"
        if (users := self.sharing.users(due.query, due.compiled)) >= SHARED_BY:
            return "shared", f"what its patterns find is kept for {users} queries, which differ in constants and filters only"
        if due.compiled.sampled is None:
            return "plain", "nothing that its patterns find can be kept"
        whole: int = rows + sum(table.num_rows for table in due.graphs.values())
        if not self.force_strategy and whole <= INCREMENTAL_ROWS:
            return "plain", f"{whole} rows are soon evaluated anew"
        if not self.force_strategy and due.compiled.changing * rows > MOST_NEW * whole:
            return "plain", due.compiled.change_in_words
        return "sampled", f"what its patterns find is kept: {due.compiled.change_in_words}"
