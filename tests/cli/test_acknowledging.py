from __future__ import annotations

import threading

import pytest

from linnet.cli.acknowledging import Acknowledging
from linnet.node.client import ControlError


class Consumer:
    """Stands where the control client does; waits with its first answer until it is let go."""

    def __init__(self, error: ControlError | None = None) -> None:
        self.asked: list[int] = []
        self.first = threading.Event()
        self.go = threading.Event()
        self.error = error

    def consumed(self, subscription: int, items: int) -> None:
        assert subscription == 7
        self.asked.append(items)
        self.first.set()
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error


def test_what_is_handled_meanwhile_goes_together() -> None:
    consumer = Consumer()
    acknowledging = Acknowledging(consumer, 7)
    acknowledging.handled()
    assert consumer.first.wait(10)
    for _ in range(5):
        acknowledging.handled()
    consumer.go.set()
    acknowledging.finish()
    assert consumer.asked == [1, 5]


def test_what_could_not_be_acknowledged_is_raised() -> None:
    consumer = Consumer(ControlError(404, "not_found", "closed", ""))
    consumer.go.set()
    acknowledging = Acknowledging(consumer, 7)
    acknowledging.handled()
    with pytest.raises(ControlError):
        acknowledging.finish()
    with pytest.raises(ControlError):
        acknowledging.handled()


def test_nothing_handled_is_nothing_asked() -> None:
    consumer = Consumer()
    Acknowledging(consumer, 7).finish()
    assert consumer.asked == []
