"""Keys of sealed streams are looked after once an hour, while there are any."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, asked
from tests.streams.sealed.hall import OWNER, Hall
from tests.streams.stage import context_of

from linnet.core.effects import SetTimer
from linnet.machine.outbox import Outbox
from linnet.store.memory import MemoryStore
from linnet.streams.sealed.stream_keys import find
from linnet.streams.sealed.vault import PERIOD, PruneDue, Pruning, Vault

TIMER = SetTimer(PERIOD, PruneDue())
DAY = 86_400.0


def pruning(store: MemoryStore) -> Pruning:
    context, out = context_of(store=store), Outbox()
    return Pruning(context, lambda topic: None, out)


def test_without_sealed_streams_there_is_nothing_to_do() -> None:
    idle = pruning(MemoryStore())
    assert asked(idle._out, idle.prune, 0.0) == []
    assert asked(idle._out, idle.prune_later) == []


def test_one_timer_at_a_time_and_old_keys_go() -> None:
    hall, store = Hall(), MemoryStore()
    hall.hear("ben", hall.allow("ben"), hall.turn())
    due = pruning(store)
    Vault(TOPIC, store.cells, due._context.config).keep_reading(hall.readings["ben"], hall.now)
    assert asked(due._out, due.prune_later) == [TIMER]
    assert asked(due._out, due.prune_later) == []
    assert asked(due._out, due.prune, hall.now + 8 * DAY) == [TIMER]
    reading = Vault(TOPIC, store.cells, due._context.config).reading
    assert reading is not None
    assert find(reading.keys, OWNER.device, 1) is None
    assert find(reading.keys, OWNER.device, 2) is not None
