"""Looking for an announcement: whom to ask, how often, and when to stop."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, asked
from tests.streams.sealed.hall import OWNER
from tests.streams.sealed.test_following import Ben
from tests.streams.stage import NOW

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.messages import Resend
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.reader import SEARCH_PAUSE, KeySearchDue, Opening
from linnet.trace.records import Kind, Record

ONE, TWO = PeerId(b"1" * 32), PeerId(b"2" * 32)
TIMER = KeySearchDue(TOPIC)


class Seeker(Ben):
    """A reader that has heard of announcement 21 and has none."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps = GapRepair(TOPIC, self.context.config, self.context.links, self.out)
        self.search = Opening(TOPIC, self.context, self.gaps, self.following, lambda: None, self.out)
        self.told = [self.allow(), *(self.hall.turn() for _ in range(3))]
        self.following.why_not(OWNER.device, Clear(4, 21, bytes(4)))

    def linked(self, *peers: PeerId) -> None:
        for peer in peers:
            self.context.links[peer] = None
            self.gaps.note_holder(peer, OWNER.author + OWNER.device)


def question(peer: PeerId, number: int) -> Send[Resend]:
    return Send(peer, Resend(TOPIC, OWNER.author, OWNER.device, number, number))


def test_one_after_the_other_is_asked_for_what_is_missing() -> None:
    ben = Seeker()
    ben.linked(ONE, TWO)
    wait = SetTimer(ben.context.config.gap_timeout, TIMER)
    assert asked(ben.out, ben.search.look_for_keys, NOW) == [question(ONE, 21), wait]
    assert asked(ben.out, ben.search.look_for_keys, NOW) == []
    assert asked(ben.out, ben.search.ask_again, NOW) == [question(TWO, 21), wait]
    ben.hears(ben.told[3])
    assert asked(ben.out, ben.search.look_for_keys, NOW) == [question(ONE, 14), wait]
    ben.hears(ben.told[0], ben.told[1], ben.told[2])
    assert asked(ben.out, ben.search.look_for_keys, NOW) == [CancelTimer(TIMER)]
    assert asked(ben.out, ben.search.look_for_keys, NOW) == []
    assert asked(ben.out, ben.search.ask_again, NOW) == []


def test_a_storage_node_is_dialled_if_there_is_nobody_to_ask() -> None:
    ben = Seeker()
    ben.search.set_storage({ONE: Contact(ONE, ("tls://one:1",))})
    hold, timer = asked(ben.out, ben.search.look_for_keys, NOW)
    assert isinstance(hold, Hold)
    assert hold.peer == ONE
    assert timer == SetTimer(ben.context.config.gap_backoff, TIMER)
    assert len(asked(ben.out, ben.search.ask_again, NOW)) == 1
    ben.linked(ONE)
    assert question(ONE, 21) in asked(ben.out, ben.search.ask_again, NOW)
    released = asked(ben.out, ben.search.stop)
    assert [type(effect) for effect in released] == [CancelTimer, Release]


def test_what_nobody_has_is_given_up_with_a_record_and_tried_again_later() -> None:
    ben = Seeker()
    effects = asked(ben.out, ben.search.look_for_keys, NOW)
    for _ in range(100):
        effects = asked(ben.out, ben.search.ask_again, NOW)
        if not any(isinstance(effect, SetTimer) for effect in effects):
            break
    (record,) = effects
    assert isinstance(record, Record)
    assert (record.kind, record.reason, record.seq) == (Kind.DROPPED, Reason.KEY_MISSING, 21)
    assert asked(ben.out, ben.search.ask_again, NOW) == []
    assert asked(ben.out, ben.search.look_for_keys, NOW + SEARCH_PAUSE - 1) == []
    assert asked(ben.out, ben.search.look_for_keys, NOW + SEARCH_PAUSE) != []
