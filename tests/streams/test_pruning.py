"""Keys of sealed streams are looked after once an hour, while there are any."""

from __future__ import annotations

from tests.delivery.voices import TOPIC
from tests.overlay.harness import overlays_without_rings
from tests.streams.sealed.hall import OWNER, Hall
from tests.streams.stage import context_of

from linnet.core.effects import SetTimer
from linnet.core.timers import Tick
from linnet.overlay.registry import Registry
from linnet.store.memory import MemoryStore
from linnet.streams.joined import Joined
from linnet.streams.pruning import PERIOD, WHAT, Pruning
from linnet.streams.sealed import search
from linnet.streams.sealed.epochs import find
from linnet.streams.sealed.vault import Vault

TIMER = SetTimer(PERIOD, Tick(search.OWNER, WHAT, b""))
DAY = 86_400.0


def pruning(store: MemoryStore) -> Pruning:
    context = context_of(store=store)
    return Pruning(context, Joined(context, overlays_without_rings(), Registry([]), {}, ()))


def test_without_sealed_streams_there_is_nothing_to_do() -> None:
    idle = pruning(MemoryStore())
    assert idle.look(0.0) == []
    assert idle.later() == []


def test_one_timer_at_a_time_and_old_keys_go() -> None:
    hall, store = Hall(), MemoryStore()
    hall.hear("ben", hall.allow("ben"), hall.turn())
    due = pruning(store)
    Vault(TOPIC, store.cells, due._context.config).keep_reading(hall.readings["ben"], hall.now)
    assert due.later() == [TIMER]
    assert due.later() == []
    assert due.look(hall.now + 8 * DAY) == [TIMER]
    reading = Vault(TOPIC, store.cells, due._context.config).reading
    assert reading is not None
    assert find(reading.keys, OWNER.device, 1) is None
    assert find(reading.keys, OWNER.device, 2) is not None
