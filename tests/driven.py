"""A machine with an outbox of its own, for tests that compare what each call asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linnet.machine.outbox import Outbox


class Driven:
    """Passes calls on. One that returns nothing returns what was asked for and told, in order."""

    def __init__(self, make: Callable[[Outbox], Any]) -> None:
        self.out = Outbox()
        self.machine = make(self.out)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the machine has it
        found = getattr(self.machine, name)
        if getattr(found, "__annotations__", {}).get("return") != "None":
            return found

        def call(*given: Any, **named: Any) -> list[Any]:  # noqa: ANN401 - as the method takes it
            found(*given, **named)
            return self.out.take_said()

        return call

    def __len__(self) -> int:
        return len(self.machine)

    def __contains__(self, item: object) -> bool:
        return item in self.machine
