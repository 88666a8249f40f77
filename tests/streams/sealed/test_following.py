"""A reader that gets announcements in any order, twice, or never."""

from __future__ import annotations

from itertools import permutations

from tests.delivery.voices import TOPIC, Voice
from tests.streams.sealed.hall import OWNER, Hall, Told
from tests.streams.stage import NOW, context_of

from linnet.core.reasons import Reason
from linnet.event.event import Tail, Verified
from linnet.machine.outbox import Outbox
from linnet.streams.sealed.access_request import parse_request
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import KIND, encode_announcement
from linnet.streams.sealed.reader import Following
from linnet.streams.sealed.vault import Vault
from linnet.trace.records import Record


def announced(told: Told) -> Verified:
    """The unit with an announcement, at its number of ann's chain."""
    ann = Voice("ann")
    ann.next = told[0]
    return ann.sign([Tail(None, None, None, None, KIND, None, 0, None, encode_announcement(told[1]))])


class Ben:
    """A reader's node, and the owner's state beside it."""

    def __init__(self) -> None:
        self.hall = Hall()
        self.context = context_of("ben")
        self.vault = Vault(TOPIC, self.context.store.cells, self.context.config)
        self.out = Outbox()
        self.following = Following(TOPIC, OWNER.author, self.context, self.vault, self.out)

    def allow(self) -> Told:
        return self.hall.grant(parse_request(self.following.ask(NOW), NOW))

    def hears(self, *all_told: Told) -> list[bool]:
        return [self.following.read(announced(told), NOW) for told in all_told]

    def holds(self) -> list[int]:
        assert self.vault.reading is not None
        assert all(self.hall.key(known.epoch).key == known.key for known in self.vault.reading.keys)
        return [known.epoch for known in self.vault.reading.keys]


def test_in_every_order_all_keys_come() -> None:
    for order in permutations(range(4)):
        ben = Ben()
        told = [ben.allow(), ben.hall.turn(), ben.hall.allow("cat"), ben.hall.turn()]
        ben.hears(*(told[place] for place in order))
        assert ben.holds() == [1, 2, 3], order
        assert ben.hears(*told) == [False] * 4
        assert ben.following.missing() is None


def test_what_is_missing_is_named_backwards() -> None:
    ben = Ben()
    told = [ben.allow(), ben.hall.turn(), ben.hall.turn(), ben.hall.turn()]
    assert ben.following.missing() is None
    reason = ben.following.why_not(OWNER.device, Clear(4, told[3][0], bytes(4)))
    assert reason is Reason.KEY_MISSING
    for at in (3, 2, 1, 0):
        assert ben.following.missing() == (OWNER.device, told[at][0])
        assert ben.hears(told[at]) == [at == 0]
    assert ben.holds() == [1, 2, 3, 4]
    assert ben.following.missing() is None


def test_it_is_kept_with_the_event_that_brought_it() -> None:
    ben = Ben()
    ben.hears(ben.allow(), ben.hall.turn())
    again = Vault(TOPIC, ben.context.store.cells, ben.context.config)
    assert again.reading == ben.vault.reading


def test_only_the_owner_announces_and_only_to_those_who_asked() -> None:
    ben = Ben()
    other = Ben()
    told = ben.allow()
    assert other.hears(told) == [False]
    eve = Voice("eve")
    forged = eve.sign([Tail(None, None, None, None, KIND, None, 0, None, encode_announcement(told[1]))])
    assert not ben.following.read(forged, NOW)
    assert ben.out.take() == []
    assert ben.holds() == []


def test_what_is_no_announcement_leaves_a_record() -> None:
    ben = Ben()
    ben.hears(ben.allow())
    ann = Voice("ann")
    news = ben.following.read(
        ann.sign([Tail(None, None, None, None, KIND, None, 0, None, b"\x01\x05junk")]), NOW
    )
    assert not news
    assert [each.reason for each in ben.out.take() if isinstance(each, Record)] == [Reason.MALFORMED]
    assert ben.holds() == [1]
