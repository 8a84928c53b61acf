"""An engine whose commands return when the pump has carried them out, for tests that look at what the pump then does."""

from __future__ import annotations

from typing import Any

from engine.runtime.resources import GraphInfo, QueryInfo, RuleSetInfo, StreamInfo
from engine.runtime.service import Engine
from tests.waiting import DEADLINE_S


def settle(engine: Engine, seconds: float = DEADLINE_S) -> None:
    """Wait until the pump has come to the end of the log."""
    machine = engine._machine
    assert machine.wait_for(machine.writer.appender.position - 1, seconds), "the pump did not come to the end of the log"


class SettledEngine(Engine):
    """Waits for the pump after each command."""

    def settle(self) -> None:
        """Wait until the pump has come to the end of the log."""
        settle(self)

    def register(self, *given: Any, **more: Any) -> tuple[QueryInfo, bool]:
        info, created = super().register(*given, **more)
        self.settle()
        return self.query(info.name), created

    def patch_query(self, name: str, *given: Any, **more: Any) -> QueryInfo:
        super().patch_query(name, *given, **more)
        self.settle()
        return self.query(name)

    def restart_query(self, name: str, *given: Any, **more: Any) -> QueryInfo:
        super().restart_query(name, *given, **more)
        self.settle()
        return self.query(name)

    def delete_query(self, *given: Any, **more: Any) -> None:
        super().delete_query(*given, **more)
        self.settle()

    def put_stream(self, *given: Any, **more: Any) -> tuple[StreamInfo, bool]:
        found = super().put_stream(*given, **more)
        self.settle()
        return found

    def delete_stream(self, *given: Any, **more: Any) -> None:
        super().delete_stream(*given, **more)
        self.settle()

    def put_graph(self, *given: Any, **more: Any) -> tuple[GraphInfo, bool]:
        found = super().put_graph(*given, **more)
        self.settle()
        return found

    def put_rules(self, *given: Any, **more: Any) -> tuple[RuleSetInfo, bool]:
        found = super().put_rules(*given, **more)
        self.settle()
        return found

    def delete_rules(self, *given: Any, **more: Any) -> None:
        super().delete_rules(*given, **more)
        self.settle()
