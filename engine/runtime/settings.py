"""Settings of the engine, all with working defaults. Times in ms, sizes in bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from engine.limits import HOUR, WINDOW_ITEMS, WINDOW_STEPS, EvaluationLimits
from engine.plan.graphs import Way, way_of
from engine.spark.settings import SparkSettings


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the data lives and how much of it is kept (docs/settings.md). `kafka`: the servers whose topics may be read, each with the file
    of its client's properties; of a topic at most `topic_records` are read at once, and each `topic_s` seconds the topics are looked at."""

    data: Path = field(default_factory=lambda: Path("data"))
    base_url: str = "http://127.0.0.1:8175"
    commit_interval_ms: int = 20
    poll_ms: int = 25
    rotate_files: int = 15_000
    archive_files: int = 32
    max_backlog_items: int = 5_000_000
    ticks_per_job: int = 512
    max_result_rows: int = 500_000
    evaluation: EvaluationLimits = EvaluationLimits()
    commit_evaluations: int = 2_000
    batch_patience_ms: int = 2_000
    paused: bool = False
    max_queries: int = 1_000
    max_streams: int = 1_000
    max_graphs: int = 1_000
    max_graph_triples: int = 5_000_000
    max_rule_sets: int = 200
    max_rule_text: int = 16 << 20
    max_window_ms: int = HOUR
    window_steps: int = WINDOW_STEPS
    window_items: int = WINDOW_ITEMS
    product_rows: int = 1_000_000_000
    result_count: int = 100_000
    result_age_ms: int = 3_600_000
    result_bytes: int = 256 << 20
    dead_letters: int = 1_000
    push_letters: int = 100
    letter_text: int = 4_096
    letters_shown: int = 100
    idempotency_keys: int = 100_000
    tail_items: int = 1_000
    tail_bytes: int = 8 << 20
    one_shot_timeout_s: float = 10.0
    push_wait_s: float = 30.0
    command_wait_s: float = 30.0
    reserve_bytes: int = 64 << 20
    room_poll_s: float = 1.0
    watch_s: float = 1.0
    silence_s: float = 20.0
    stall_s: float = 60.0
    restarts_in_a_row: int = 5
    restart_wait_s: float = 1.0
    warm_up: bool = True
    force_executor: Literal["local", "sql"] | None = None
    force_strategy: Literal["recompute", "incremental"] | None = None
    graphs: Literal["auto", "task", "sql", "graphframes"] = "auto"
    spark: SparkSettings | None = None
    kafka: Mapping[str, Path | None] = field(default_factory=dict)
    topic_records: int = 5_000
    topic_s: float = 1.0
    max_topics: int = 20

    @property
    def paths(self) -> Way | None:
        """How closures of paths are found where that is not left to the planner."""
        return way_of(self.graphs)

    def bounds(self) -> dict[str, int | float]:
        """All of them that are numbers, as ``/info`` shows them."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}

    @property
    def log_folder(self) -> Path:
        """Files of the input log that the pump has not archived yet."""
        return self.data / "log"

    @property
    def archive_folder(self) -> Path:
        """Files of the input log that the pump is done with."""
        return self.data / "archive"

    @property
    def graph_folder(self) -> Path:
        """One Parquet file per version of a static graph."""
        return self.data / "graphs"

    @property
    def states_folder(self) -> Path:
        """One file per program with a time of its own: what it holds."""
        return self.data / "programs"

    @property
    def checkpoint_folder(self) -> Path:
        """Disposable checkpoints of the streaming query."""
        return self.data / "checkpoints"

    @property
    def topics_folder(self) -> Path:
        """Disposable checkpoints of the streaming queries over Kafka's topics."""
        return self.data / "topics"

    @property
    def sinks_folder(self) -> Path:
        """One file per query whose results go to a topic: the last that was written."""
        return self.data / "sinks"

    @property
    def database(self) -> Path:
        """Results, definitions and progress (SQLite)."""
        return self.data / "thalweg.db"
