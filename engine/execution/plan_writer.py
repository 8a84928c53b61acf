"""Writes the job of a plan whose way is chosen: its texts, the tables that it reads, and what is to be made before it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from engine.execution.choices import Choice
from engine.execution.due import Due
from engine.execution.plan_job import ExecutorName, Part, PlanJob
from engine.functions.typed import ANY_KIND, Kinds
from engine.plan.nodes import KEYS, KeptSource, StaticSource, ValiditySource
from engine.sql.closing import Closing
from engine.sql.dialect import DIALECTS
from engine.sql.emit import PlanText
from engine.sql.fixpoint import ClosureText
from engine.sql.kept import KeptText
from engine.sql.sources import numbers_of, source_texts, stream_table, tables, timed_table
from engine.worker.panes import PaneStep
from engine.worker.resident import KeptStep


def written(choice: Choice) -> PlanJob:
    """The job of the evaluations that are due. Its texts are written when they are asked for."""
    return _Writer(choice).job()


class _Writer:
    """Writes one job. What its text stands on does not depend on the `kinds` of objects that the windows have, by which it is shortened: so
    what is needed around it is told from the text for any kinds."""

    def __init__(self, choice: Choice) -> None:
        self._choice, self._due, self._evaluation = choice, choice.due, choice.due.evaluation
        self._windows = choice.due.compiled.statement.windows
        self._text = choice.compiled.text(choice.executor, choice.typed, choice.form)
        self._kinds: Kinds = ANY_KIND
        self._closed = frozenset[str]()     # the tables that closures read
        if choice.executor == "local":
            self._kinds = frozenset().union(*(content.kinds for content in self._due.streams.values()))

    def job(self) -> PlanJob:
        choice, due, text = self._choice, self._due, self._text
        kept = kept_steps(due, choice.compiled.kept_texts(text, choice.typed))
        names = _tables_under(text, kept)
        own = {} if due.derived is None or choice.compiled.derived is None else {timed_table(choice.compiled.derived): due.derived}
        closer: ExecutorName = "local" if choice.ahead else choice.executor
        texts = choice.compiled.text(closer, choice.typed).closures
        constants = {name: table for closure in texts for name, table in choice.compiled.constants_of(closure).items()}
        self._closed = frozenset((*constants, *tables(
            [leaf for closure in texts for leaf in closure.source.base
             if choice.closures is None or not isinstance(leaf, ValiditySource)], self._windows)))
        names = frozenset(names | self._closed)
        rows = choice.rows
        if choice.closures is not None:     # they go on from what is new
            new = {iri: f"{stream_table(iri)}_{choice.closures.mark}" for iri in due.streams}
            brought = {new[iri]: content.after(max(choice.closures.seen, due.since)) for iri, content in due.streams.items()}
            own |= brought
            rows = sum(table.num_rows for table in brought.values())
            closings = tuple(choice.closures.closing(text, self._evaluation, new) for text in texts)
        else:
            closings = self._made_anew(texts, closer)
        shape = choice.compiled.shape if choice.form == "shared" and not own and not closings else None
        return PlanJob(
            due, self._evaluation, choice.executor, lambda: self._statement(self._written()), names | own.keys(),
            rows * len(due.ticks), choice.closures, own, constants, closings=closings, ahead=choice.ahead, kept=kept,
            rounds=tuple((part, *text.pairs(self._below(text), part)) for part in text.rounds),
            panes=lambda: self._panes(self._written()), given=lambda: self._numbers(text), shape=shape, typed=choice.typed,
            kinds=self._kinds, parts=tuple(map(self._part, range(len(text.parts)))), is_part=bool(text.parts) and not text.select,
            by_object=self._by_object(texts))

    def _by_object(self, texts: Sequence[ClosureText]) -> dict[str, tuple[str, frozenset[str]]]:
        found = {}
        for leaf in (leaf for closure in texts for leaf in closure.source.base):
            if isinstance(leaf, ValiditySource) and leaf.by_object:
                iri = self._windows[leaf.index].stream
                found[stream_table(iri, leaf.key, leaf.by_object)] = iri, leaf.by_object
        return found

    def _made_anew(self, texts: Sequence[ClosureText], closer: ExecutorName) -> tuple[Closing, ...]:
        return tuple(closure.ready(source_texts(closure.source.base, self._windows, self._evaluation, DIALECTS[closer]))
                     for closure in texts)

    def _written(self) -> PlanText:
        """The text that runs: of the same shape, for the kinds of objects that there are."""
        return self._choice.compiled.text(self._choice.executor, self._choice.typed, self._choice.form, self._kinds)

    def _statement(self, text: PlanText) -> str:
        return text.statement(self._below(text))

    def _below(self, text: PlanText) -> list[str]:
        """What a text stands on."""
        evaluation = replace(self._evaluation, named=self._is_named(text))
        return [*source_texts(text.sources, self._windows, evaluation, DIALECTS[self._choice.executor]),
                *(panes.text(self._windows, evaluation) for panes in text.panes),
                *(f"{name} AS (SELECT * FROM {_gathered_table(self._due.query, name)})" for name, _ in text.parts)]

    def _is_named(self, text: PlanText) -> bool:
        """Whether the text has parameters for T and the ends of windows, and so is the same each time."""
        whole = not text.closures and not text.rounds and not text.parts
        return len(self._due.ticks) == 1 and whole and self._choice.executor == "local" and all(
            isinstance(source, (KeptSource, StaticSource)) for source in text.sources)

    def _numbers(self, text: PlanText) -> dict[str, int]:
        return numbers_of(self._windows, self._evaluation) if self._is_named(text) else {}

    def _panes(self, text: PlanText) -> tuple[PaneStep, ...]:
        """What a text asks of panes at each T."""
        windows, evaluation = self._windows, self._evaluation
        return tuple(PaneStep(one.table(windows), tuple(one.windows(windows, tick, evaluation) for tick in evaluation.ticks),
                              evaluation.since) for one in text.panes)

    def _part(self, number: int) -> Part:
        """What each shard evaluates of the plan."""
        name, text = self._text.parts[number]
        steps = kept_steps(self._due, self._choice.compiled.kept_texts(text, self._choice.typed))

        def written() -> PlanText:
            return self._written().parts[number][1]

        return Part(_gathered_table(self._due.query, name), lambda: self._statement(written()),
                    _tables_under(text, steps) | self._closed, steps, lambda: self._panes(written()), lambda: self._numbers(text))


def kept_steps(due: Due, texts: Sequence[KeptText]) -> tuple[KeptStep, ...]:
    """The kept relations that a query samples, each with the time from which on it needs the facts of its streams."""
    oldest = {stream_table(iri, key): content.oldest for iri, content in due.streams.items() for key in KEYS}
    return tuple(KeptStep(text, tuple(oldest[table] for table in text.tables)) for text in texts)


def _tables_under(text: PlanText, steps: Sequence[KeptStep]) -> frozenset[str]:
    """The tables that a text reads, and those that the relations follow which it samples."""
    return text.tables.union(*((*step.text.tables, *step.text.graphs) for step in steps))


def _gathered_table(query: str, part: str) -> str:
    """The table with what shards have found for a query."""
    return f"{part}_{hashlib.sha256(query.encode()).hexdigest()[:16]}"
