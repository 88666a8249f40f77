"""From where on chains are due: questions and answers between two nodes, input by input."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from tests.delivery.voices import Voice, asked, items_of
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.items import Missed
from linnet.delivery.messages import ChainPlace, Data, Heads, Resend, Resent
from linnet.event.event import Event, Verified
from linnet.peer.messages import CODEC
from linnet.streams.announcements import AnswersDue
from linnet.streams.commands import Subscribe
from linnet.streams.config import StorageRule

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


class Scene:
    """A stream whose reader has been there for 60 seconds when a neighbour comes."""

    def __init__(self) -> None:
        self.context = context_of()
        self.stream = Staged("tea", self.context)
        self.ann = Voice(topic=self.stream.topic)
        self.context.links[A] = None
        self.stream.readers.add(Subscribe(1, "tea"), None, NOW - 60.0)
        self.greeting = asked(self.stream.out, self.stream.handle_neighbor_up, A, NOW)

    def place(self, last: int, held: bool = True) -> ChainPlace:
        return ChainPlace(self.ann.identity.author, self.ann.identity.card.device, 0, last, held)

    def heads(
        self, last: int, due: int | None, waited: int | None = 0, held: bool = True, peer: PeerId = A
    ) -> list[object]:
        answer = None if due is None else (due,)
        heads = Heads(self.stream.topic, (self.place(last, held),), waited, answer)
        return asked(self.stream.out, self.stream.handle_heads, peer, heads, NOW)

    def hear(self, unit: Verified) -> list[object]:
        data = Data(unit.unit, 1, 0, int(NOW * 1_000_000), self.ann.identity.card)
        return asked(self.stream.out, self.stream.handle_data, A, data, NOW)

    def resent(self, unit: Verified, age_ms: int, peer: PeerId = A) -> list[object]:
        number = unit.unit.seq or 0
        author, device, card = unit.unit.author, unit.unit.device, self.ann.identity.card
        page = Resent(
            self.stream.topic, author, device, number, number, (unit.unit,), (card,), True, None, (age_ms,)
        )
        return asked(self.stream.out, self.stream.handle_resent, peer, page, NOW)

    @property
    def missing(self) -> list[tuple[int, int]]:
        return self.stream.ingest.chains[self.ann.key].missing()


def bodies(effects: Iterable[object]) -> list[bytes]:
    return [item.body for item in items_of(effects) if isinstance(item, Event)]


def test_who_reads_says_for_how_long_and_who_does_not_says_that() -> None:
    scene = Scene()
    assert scene.greeting == [Send(A, Heads(scene.stream.topic, (), 60_000))]
    silent = Staged("tea", context_of())
    assert asked(silent.out, silent.handle_neighbor_up, A, NOW) == [Send(A, Heads(silent.topic, (), 0))]


def test_who_is_told_answers_with_what_was_said_since() -> None:
    stream = Staged("tea", context_of("them"))
    ann = Voice(topic=stream.topic)
    for number, unit in enumerate(ann.units(4)):
        stream.ingest.accept(unit, NOW - 100.0 + 30 * number)
    (answer,) = asked(stream.out, stream.handle_heads, A, Heads(stream.topic, (), 50_000), NOW)
    assert isinstance(answer, Send)
    assert isinstance(answer.message, Heads)
    assert (answer.message.waited_ms, answer.message.due) == (0, (2,))
    (nothing,) = asked(stream.out, stream.handle_heads, B, Heads(stream.topic, (), 1_000), NOW)
    assert isinstance(nothing, Send)
    assert nothing.message.due == (4,)


def test_what_the_log_holds_is_told_by_when_it_was_stored() -> None:
    context = context_of("them")
    stream = Staged("tea", context)
    us = Voice("them", topic=stream.topic)
    for number, unit in enumerate(us.units(6)):
        stream.archive.keep(unit, NOW - 100.0 + 10 * number)
    again = Staged("tea", context)
    for waited, due in ((200, 0), (100, 0), (95, 1), (51, 5), (49, 6)):
        (answer,) = asked(again.out, again.handle_heads, A, Heads(again.topic, (), waited * 1000), NOW)
        assert answer.message.due == (due,)


def test_the_log_is_not_searched_for_who_came_after_us() -> None:
    context = context_of("them")
    us = Voice("them", topic=Staged("tea", context).topic)
    Staged("tea", context).archive.keep(us.say(b"a"), NOW - 5.0)
    stream = Staged("tea", context)
    stream.handle_neighbor_up(B, NOW)
    stream.archive.stored_since = None  # type: ignore[assignment,method-assign]
    (answer,) = asked(stream.out, stream.handle_heads, A, Heads(stream.topic, (), 1_000), NOW + 2.0)
    assert answer.message.due == (1,)


def test_what_was_said_since_is_missing_and_what_was_said_before_is_not() -> None:
    scene = Scene()
    scene.heads(7, due=5)
    assert scene.missing == [(5, 7)]


def test_a_node_of_version_0_1_0_says_nothing_of_it_and_all_stays_as_it_was() -> None:
    scene = Scene()
    scene.heads(7, due=None, waited=None)
    assert scene.missing == []


class OldHeads(Struct, frozen=True, array_like=True, tag=31):
    """As version 0.1.0 reads and writes it."""

    topic: bytes
    chains: tuple[ChainPlace, ...]


def test_version_0_1_0_reads_what_we_say_and_we_read_what_it_says() -> None:
    scene = Scene()
    ours = Heads(scene.stream.topic, (scene.place(7),), 60_000, (5,))
    read = msgspec.msgpack.decode(CODEC.encode(ours), type=OldHeads)
    assert (read.topic, read.chains) == (ours.topic, ours.chains)
    theirs = CODEC.decode(msgspec.msgpack.encode(read))
    assert theirs == Heads(ours.topic, ours.chains)
    assert (theirs.waited_ms, theirs.due) == (None, None)


def test_a_chain_is_held_until_the_answer_comes_and_then_goes_on_in_order() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    waiting = scene.heads(2, due=None)
    assert SetTimer(3.0, AnswersDue(scene.stream.topic)) in waiting
    assert bodies(scene.hear(units[3])) == []
    scene.heads(3, due=2)
    assert scene.missing == [(2, 2)]
    assert bodies(scene.resent(units[2], 9)) == [body for u in units[2:] for body in texts(u)]


HOURS_MS = 5 * 3_600_000


def test_a_clock_that_was_set_makes_nothing_old_that_others_say_was_said_in_our_time() -> None:
    scene = Scene()
    units = scene.ann.units(6)
    scene.heads(5, due=3)
    scene.heads(5, due=6, peer=B)
    assert scene.missing == [(3, 5)]
    for number in (3, 4, 5):
        assert bodies(scene.resent(units[number], HOURS_MS, B)) == texts(units[number])
    answer = asked(scene.stream.out, scene.stream.handle_heads, B, Heads(scene.stream.topic, (), 1_000), NOW)[
        -1
    ]
    assert answer.message.due == (3,), "in doubt it is due to others too"


def test_a_clock_that_was_set_makes_nothing_old_that_follows_what_we_heard() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    assert bodies(scene.hear(units[1])) == []
    assert bodies(asked(scene.stream.out, scene.stream.release_held, NOW)) == texts(units[1])
    assert bodies(scene.hear(units[3])) == []
    assert bodies(scene.resent(units[2], HOURS_MS)) == [*texts(units[2]), *texts(units[3])]


def test_what_was_said_before_our_time_stays_old() -> None:
    scene = Scene()
    scene.stream.ingest.wants_all = True
    units = scene.ann.units(3)
    scene.heads(2, due=2)
    assert bodies(scene.resent(units[0], 90_000)) == []
    assert bodies(scene.resent(units[1], 80_000)) == []
    assert bodies(scene.resent(units[2], 50_000)) == texts(units[2])


def test_after_a_restart_nothing_is_old_that_follows_what_the_log_holds() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    scene.context.cards.learn(scene.ann.identity.card)
    scene.stream.archive.keep(units[0], NOW - 90.0)
    scene.stream.archive.keep(units[1], NOW - 30.0)
    stream = scene.stream = Staged("tea", scene.context)
    stream.ingest.restore()
    stream.readers.add(Subscribe(1, "tea"), None, NOW - 60.0)
    assert bodies(scene.hear(units[3])) == []
    assert bodies(scene.resent(units[2], HOURS_MS)) == [*texts(units[2]), *texts(units[3])]


def test_what_was_had_late_is_not_told_as_new_after_a_restart() -> None:
    scene = Scene()
    scene.stream.keep(StorageRule("tea"))
    units = scene.ann.units(3)
    scene.heads(1, due=2)
    scene.resent(units[0], 500_000)
    scene.resent(units[1], 400_000)
    scene.hear(units[2])
    again = Staged("tea", scene.context)
    again.keep(StorageRule("tea"))
    for waited, due in ((600, 0), (500, 0), (300, 2), (90, 2)):
        answer = asked(again.out, again.handle_heads, A, Heads(again.topic, (), waited * 1000), NOW + 60.0)[
            -1
        ]
        assert answer.message.due == (due,)
    request = Resend(again.topic, units[0].unit.author, units[0].unit.device, 0, 2)
    resent = again.archive.read_range(request, NOW + 60.0, again.ingest.chains[scene.ann.key])
    assert resent.ages_ms == (460_000, 460_000, 60_000)


def texts(unit: Verified) -> list[bytes]:
    return [event.body for event in unit.events]


def test_who_does_not_answer_is_not_waited_for_for_ever() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    scene.heads(2, due=None)
    assert bodies(scene.hear(units[3])) == []
    assert bodies(asked(scene.stream.out, scene.stream.release_held, NOW)) == texts(units[3])


def test_what_has_lost_its_turn_is_told_once() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    assert bodies(scene.hear(units[3])) == []
    assert bodies(asked(scene.stream.out, scene.stream.release_held, NOW)) == texts(units[3])
    author, device = scene.ann.identity.author, scene.ann.identity.card.device
    missed = Missed(scene.stream.topic, author, device, 1, 2, Reason.GAP_UNFILLED)
    assert items_of(scene.heads(3, due=1)) == [missed]
    assert items_of(scene.heads(3, due=1, peer=B)) == []


def test_no_claim_of_others_changes_our_own_chain() -> None:
    scene = Scene()
    us = Voice("us", topic=scene.stream.topic)
    scene.stream.archive.keep(us.say(b"a"), NOW)
    stream = Staged("tea", scene.context)
    stream.readers.add(Subscribe(1, "tea"), None, NOW - 60.0)
    place = ChainPlace(us.identity.author, us.identity.card.device, 0, 9, True)
    stream.handle_heads(A, Heads(stream.topic, (place,), 0, (0,)), NOW)
    assert stream.ingest.chains[us.key].base == 0
    assert (
        items_of(asked(stream.out, stream.handle_heads, A, Heads(stream.topic, (place,), 0, (0,)), NOW)) == []
    )


def test_false_answers_silence_nobody() -> None:
    scene = Scene()
    units = scene.ann.units(5)
    scene.heads(10**9, due=10**12)
    assert bodies(scene.hear(units[3])) == texts(units[3]), "it is live, whatever was said of it"
    short = Heads(scene.stream.topic, (scene.place(4), scene.place(5)), 0, (4,))
    scene.stream.handle_heads(A, short, NOW)
    assert bodies(scene.hear(units[4])) == texts(units[4])


def test_who_meets_a_chain_in_its_middle_asks_what_was_said_before_in_its_time() -> None:
    scene = Scene()
    units = scene.ann.units(4)
    asked_for = scene.hear(units[2])
    assert bodies(asked_for) == []
    questions = [each for each in asked_for if isinstance(each, Send) and isinstance(each.message, Heads)]
    assert [(each.peer, each.message.waited_ms) for each in questions] == [(A, 60_000)]
    assert bodies(scene.heads(2, due=1)) == []
    assert scene.missing == [(1, 1)]
    assert bodies(scene.resent(units[1], 500)) == [*texts(units[1]), *texts(units[2])]
    assert bodies(scene.hear(units[3])) == texts(units[3])


def test_what_comes_live_meanwhile_has_its_turn_if_it_is_due_and_none_if_not() -> None:
    for due, expected in ((0, [b"0", b"1", b"2"]), (2, [b"2"])):
        scene = Scene()
        units = scene.ann.units(3)
        scene.hear(units[2])
        assert bodies(scene.hear(units[0])) == []
        assert bodies(scene.hear(units[1])) == []
        assert bodies(scene.heads(2, due=due)) == expected


def test_who_asks_itself_says_that_all_is_due() -> None:
    scene = Scene()
    scene.hear(scene.ann.units(4)[3])
    question = Heads(scene.stream.topic, (), 1_000)
    (answer,) = asked(scene.stream.out, scene.stream.handle_heads, B, question, NOW)
    assert answer.message.due == (0,), "in doubt it is"


def test_what_we_lack_ourselves_is_due_to_others_too() -> None:
    scene = Scene()
    units = scene.ann.units(6)
    scene.heads(5, due=2)
    scene.hear(units[5])
    question = Heads(scene.stream.topic, (), 1_000)
    answer = asked(scene.stream.out, scene.stream.handle_heads, B, question, NOW)[-1]
    assert scene.missing == [(2, 4)]
    assert answer.message.due == (2,)


def test_without_a_wish_for_what_was_before_nothing_is_held() -> None:
    stream = Staged("tea", context_of())
    ann = Voice(topic=stream.topic)
    unit = ann.units(3)[2]
    data = Data(unit.unit, 1, 0, int(NOW * 1_000_000), ann.identity.card)
    told = asked(stream.out, stream.handle_data, A, data, NOW)
    assert not any(isinstance(each, Send) and isinstance(each.message, Heads) for each in told)
    assert not stream.ingest.chains[ann.key].held


def test_a_subscription_made_while_the_clock_was_ahead_misses_nothing_by_it() -> None:
    scene = Scene()
    units = scene.ann.units(3)
    scene.stream.readers.add(Subscribe(2, "tea"), None, NOW + 100_000.0)
    scene.stream.readers.remove(1)
    scene.heads(1, due=0)
    assert bodies(scene.resent(units[0], 5_000)) == texts(units[0])
