"""What waits in an outbox."""

from __future__ import annotations

from linnet.delivery.messages import Data
from linnet.peer.messages import BULK, Ping
from linnet.sim.hosts import Outbox


def test_control_goes_before_bulk_and_each_keeps_its_order() -> None:
    outbox = Outbox()
    assert Data in BULK
    for number in range(3):
        outbox.bulk.append((10, 0.0, Ping(100 + number)))
        outbox.control.append((5, 0.0, Ping(number)))
    taken = [outbox.take() for _ in range(7)]
    numbers = [entry[2].number if entry and isinstance(entry[2], Ping) else None for entry in taken]
    assert numbers == [0, 1, 2, 100, 101, 102, None]


def test_clearing_counts_what_was_unsent_and_what_was_leaving() -> None:
    outbox = Outbox()
    outbox.control.append((5, 0.0, Ping(1)))
    outbox.bulk.append((5, 0.0, Ping(2)))
    outbox.sending = True
    assert outbox.clear() == 3
    assert outbox.take() is None
