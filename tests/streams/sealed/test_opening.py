"""Keys that come after what they open: told as unreadable first, handed over then."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, asked
from tests.streams.sealed.hall import OWNER
from tests.streams.sealed.test_following import Ben, announced
from tests.streams.sealed.test_sealed_stream import sealed_events
from tests.streams.stage import NOW

from linnet.core.effects import Deliver
from linnet.core.reasons import Reason
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.items import Item, Unreadable
from linnet.event.event import Event
from linnet.streams.commands import Subscribe
from linnet.streams.ingest import Governance
from linnet.streams.sealed.reader import MAX_EVENTS, Opening
from linnet.streams.sealed.sealed_stream import Sealed
from linnet.streams.subscribe import Readers


class Scene(Ben):
    """Ben's subscription of ann's stream."""

    def __init__(self) -> None:
        super().__init__()
        governance = Governance(TOPIC, OWNER.author, self.context.store.cells)
        sealed = Sealed(TOPIC, self.context, governance, self.out)
        self.vault, self.following = sealed.vault, sealed.following
        self.readers = Readers(TOPIC, self.context, self.out, OWNER.author, sealed.open)
        gaps = GapRepair(TOPIC, self.context.config, self.context.links, self.out)
        self.opening = Opening(
            TOPIC, self.context, gaps, self.following, self.readers.hand_unlocked, self.out
        )
        self.readers.begin(self.readers.add(Subscribe(1, "s"), None))


def items(effects: object) -> list[Item]:
    return [item for each in effects if isinstance(each, Deliver) for item in each.items]  # type: ignore[attr-defined]


def test_what_was_told_as_unreadable_comes_when_its_key_does() -> None:
    scene = Scene()
    told = scene.allow()
    unit = sealed_events(scene.hall, b"rain", b"snow")
    first = items(asked(scene.out, scene.readers.hand, scene.readers.ordered, unit, 1, NOW))
    assert [each.reason for each in first if isinstance(each, Unreadable)] == [Reason.KEY_MISSING] * 2
    assert all(each.event.body == b"" for each in first if isinstance(each, Unreadable))
    then = items(asked(scene.out, scene.opening.read, [announced(told)], NOW))
    assert [each.body for each in then if isinstance(each, Event)] == [b"rain", b"snow"]
    assert [each.id for each in then if isinstance(each, Event)] == [event.id for event in unit.events]
    assert items(asked(scene.out, scene.opening.read, [announced(told)], NOW)) == []


def test_announcements_themselves_are_for_nodes_alone() -> None:
    scene = Scene()
    assert (
        items(asked(scene.out, scene.readers.hand, scene.readers.ordered, announced(scene.allow()), 1, NOW))
        == []
    )


def test_what_waits_for_a_key_is_bounded() -> None:
    scene = Scene()
    told = scene.allow()
    for start in range(0, MAX_EVENTS + 512, 256):
        bodies = [b"%d" % number for number in range(start, start + 256)]
        scene.readers.hand(scene.readers.ordered, sealed_events(scene.hall, *bodies), 1, NOW)
    then = items(asked(scene.out, scene.opening.read, [announced(told)], NOW))
    assert len(then) == MAX_EVENTS
    last = then[-1]
    assert isinstance(last, Event)
    assert last.body == b"%d" % (MAX_EVENTS + 511)
