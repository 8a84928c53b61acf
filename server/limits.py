"""Every limit of the server in one place; each can be set on the command line and is shown at ``/info``.

Sizes are bytes, times seconds unless the name says otherwise (docs/http-api.md, "Default limits").
"""

from dataclasses import asdict, dataclass

from engine.limits import EvaluationLimits
from engine.runtime.settings import Settings

_EVALUATION = EvaluationLimits()
_ENGINE = Settings()
KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, one feed and the whole server may use."""

    query_text: int = 64 * KIB
    json_body: int = 1 * MIB
    push_body: int = 8 * MIB
    push_body_decompressed: int = 64 * MIB
    push_body_streamed: int = 256 * MIB
    item_bytes: int = 1 * MIB
    item_triples: int = 10_000
    push_triples: int = 2_000_000
    nesting: int = 64
    literal: int = 256 * KIB
    graph_upload: int = 256 * MIB
    graph_triples: int = 2_000_000
    rule_text: int = 1 * MIB
    push_errors_listed: int = 100
    push_errors: int = 10_000

    connections: int = 6_000
    backlog: int = 2_048
    header_seconds: float = 10.0
    header_bytes: int = 64 * KIB
    keep_alive_seconds: float = 5.0
    upload_seconds: float = 120.0
    spooled_bytes: int = 1024 * MIB
    pending_bytes: int = 256 * MIB
    send_seconds: float = 60.0

    quick_threads: int = 16
    catalogue_threads: int = 4
    one_shots_at_once: int = 4
    proofs_at_once: int = 1
    large_uploads_at_once: int = 2
    large_upload: int = 1 * MIB
    waiting_requests: int = 256

    subscribers_per_query: int = 2_000
    subscribers: int = 5_000
    queries_per_feed: int = 100
    plain_wsgi_feeds: int = 8
    tail_seconds: float = 0.25
    max_queries: int = _ENGINE.max_queries
    registrations_per_minute: int = 300
    result_event: int = 1 * MIB
    ring_events: int = 1_024
    ring_bytes: int = 32 * MIB
    rings_bytes: int = 512 * MIB
    relations_kept: int = 4
    notices_waiting: int = 10_000
    notices_bytes: int = 64 * MIB
    page_bytes: int = 1 * MIB
    statuses_kept: int = 1_000
    heartbeat_seconds: float = 15.0
    slow_seconds: float = 30.0
    feed_seconds: float = 600.0
    feed_seconds_spread: float = 0.2
    progress_seconds: float = 1.0
    retry_ms: int = 3_000
    retry_when_full_ms: int = 30_000

    evaluation_ms: int = _EVALUATION.evaluation_ms
    evaluation_rows: int = _EVALUATION.evaluation_rows
    evaluation_bytes: int = _EVALUATION.evaluation_bytes
    state_rows: int = _EVALUATION.state_rows
    commit_evaluations: int = _ENGINE.commit_evaluations
    batch_patience_ms: int = _ENGINE.batch_patience_ms
    window_steps: int = _ENGINE.window_steps
    window_items: int = _ENGINE.window_items
    product_rows: int = _ENGINE.product_rows

    one_shot_seconds: float = 10.0
    why_triples: int = 100_000
    why_proofs: int = 100
    page: int = 1_000
    shutdown_seconds: float = 3.0

    def as_json(self) -> dict[str, int | float]:
        return asdict(self)
