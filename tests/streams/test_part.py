"""Streams as a part of a node: which inputs it hears, and to whom it answers."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked
from tests.overlay.harness import overlays_without_rings
from tests.streams.stage import NOW, context_of

from linnet.core.effects import AfterCommit, Blame, Reply, Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.messages import Data, Heads, History, HistoryPage, Resend, Resent, Watch
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Outbox
from linnet.machine.router import Router, table_of
from linnet.overlay.config import Overlay
from linnet.overlay.notices import JoinRefused, StorageKnown
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.streams.commands import AskToRead, Publish, Published, Subscribe, SwitchOverlay
from linnet.streams.config import StorageRule, StreamsConfig
from linnet.streams.part import Streams
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record

ASKER, TRACKER = PeerId(b"a" * 32), Contact(PeerId(b"t" * 32), ("tls://t:1",))
TEA = topic_of("tea")


class Node:
    """The streams of a node with one tracker, which keeps one of them."""

    def __init__(self, *trackers: Contact) -> None:
        self.out = Outbox()
        self.context: Context = context_of()
        config = StreamsConfig(rules=(StorageRule("tea"),))
        overlays = overlays_without_rings(self.out)
        self.streams = Streams(self.context, self.out, overlays, TrackerChoice(trackers), config)
        self.router = Router(self.out, (self.streams,))
        self.streams.start(NOW)

    def command(self, command: object) -> list[object]:
        return asked(self.out, self.router.command, 7, command, NOW)


def test_what_is_read_from_the_log_goes_to_whoever_asked_once_it_is_durable() -> None:
    node, ann = Node(TRACKER), Voice(topic=TEA)
    author, device = ann.identity.author, ann.identity.card.device
    range_asked = Resend(TEA, author, device, 0, 3)
    resent = Resent(TEA, author, device, 0, 3, (), (), True, Reason.NOT_HELD)
    assert asked(node.out, node.router.message, ASKER, range_asked, NOW) == [
        AfterCommit((Send(ASKER, resent),))
    ]
    history = History(TEA, 5, None, 0)
    page = HistoryPage(TEA, 5, (), (), 0, True, None, False, None)
    assert asked(node.out, node.router.message, ASKER, history, NOW) == [AfterCommit((Send(ASKER, page),))]
    own = node.context.peer
    assert asked(node.out, node.router.message, own, history, NOW) == [Send(own, page)], "it tells nobody"


def test_who_speaks_of_a_stream_that_is_not_open_here_is_blamed() -> None:
    node, ann = Node(TRACKER), Voice(topic=topic_of("coffee"))
    told = [
        Record(Kind.REJECTED, topic_of("coffee"), peer=ASKER, reason=Reason.NOT_JOINED),
        Blame(ASKER, Reason.NOT_JOINED),
    ]
    assert asked(node.out, node.router.message, ASKER, Heads(topic_of("coffee"), ()), NOW) == told
    data = Data(ann.say().unit, 1, 0, 0, ann.identity.card)
    assert asked(node.out, node.streams.handle_data, ASKER, data, NOW) == told
    assert (TEA in node.streams.own_topics, topic_of("coffee") in node.streams.own_topics) == (True, False)


def test_receipts_are_for_streams_that_are_kept() -> None:
    node = Node(TRACKER)
    node.command(Subscribe(1, "coffee"))
    assert asked(node.out, node.router.message, ASKER, Watch(topic_of("coffee"), True), NOW) == [
        Record(Kind.REJECTED, topic_of("coffee"), peer=ASKER, reason=Reason.NOT_HELD, note="watch")
    ]
    assert asked(node.out, node.router.message, ASKER, Watch(TEA, True), NOW) == []


def test_every_timer_of_a_stream_that_was_left_is_passed_over() -> None:
    node = Node(TRACKER)
    timers = table_of((Streams,)).timers
    fields = {"chain": b"c" * 40, "head": b"h" * 32, "subscription": 1, "request": 7}
    heard = 0
    for kind in timers:
        assert issubclass(kind, Timer)
        names = [name for name in kind.__struct_fields__ if name != "topic"]
        if "topic" not in kind.__struct_fields__:
            continue
        timer = kind(topic_of("coffee"), *(fields[name] for name in names))
        assert asked(node.out, node.router.timer, timer, NOW) == []
        heard += 1
    assert (heard, len(timers)) == (22, 24)


def test_subscriptions_are_ended_and_consumed_by_their_number() -> None:
    node = Node(TRACKER)
    node.command(Subscribe(1, "tea"))
    assert (1 in node.streams.own_subscriptions, 2 in node.streams.own_subscriptions) == (True, False)
    done = AfterCommit((Reply(7, Done()),))
    assert asked(node.out, node.streams.handle_consumed, 7, Consumed(1, 1), NOW) == [done]
    assert asked(node.out, node.streams.handle_unsubscribe, 7, Unsubscribe(1), NOW)[-1] == done
    unknown = Reply(7, Declined(Reason.UNKNOWN, "no subscription 1"))
    assert asked(node.out, node.streams.handle_unsubscribe, 7, Unsubscribe(1), NOW) == [unknown]
    assert asked(node.out, node.streams.handle_consumed, 7, Consumed(1, 1), NOW) == [unknown]


def test_what_is_refused_is_declined_though_the_stream_was_opened_for_it() -> None:
    node = Node(TRACKER)
    effects = node.command(AskToRead("coffee"))
    (answer,) = [effect for effect in effects if isinstance(effect, Reply)]
    assert isinstance(answer.result, Declined)
    assert answer.result.reason is Reason.UNSUPPORTED
    assert len(effects) > 1, "it is joined, and left after a while"
    refused = node.command(SwitchOverlay("coffee", Overlay.RING))
    assert [type(effect) for effect in refused] == [Reply]


def test_what_an_overlay_tells_while_a_stream_is_joined_is_acted_on_before_it_is_published_in() -> None:
    node = Node()
    effects = node.command(Publish("coffee", (b"x",), confirm=5.0))
    refused = Record(Kind.REJECTED, topic_of("coffee"), reason=Reason.NO_ADDRESS, note="join refused")
    assert effects[0] == refused
    assert not node.out.notices
    (promised,) = [effect for effect in effects if isinstance(effect, AfterCommit)]
    answer = promised.effects[-1]
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, Published)
    assert answer.result.unconfirmed is Reason.NO_STORAGE, "nobody is there, and that is known by then"


def test_what_overlays_tell_of_streams_that_are_not_open_changes_nothing() -> None:
    node = Node(TRACKER)
    coffee = topic_of("coffee")
    known = StorageKnown(coffee, (Contact(ASKER),))
    assert asked(node.out, node.streams.handle_storage_known, known, NOW) == []
    refused = JoinRefused(coffee, Reason.UNREACHABLE)
    record = Record(Kind.REJECTED, coffee, reason=Reason.UNREACHABLE, note="join refused")
    assert asked(node.out, node.streams.handle_join_refused, refused, NOW) == [record]
