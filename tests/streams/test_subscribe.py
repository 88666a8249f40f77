"""Beginning a subscription."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked
from tests.streams.stage import NOW, Staged, context_of

from linnet.core.effects import AfterCommit, Deliver, Reply, Send, SetTimer
from linnet.core.reasons import Reason
from linnet.delivery.catch_up import HistoryDue
from linnet.delivery.gap_repair import GapDue
from linnet.delivery.messages import History
from linnet.machine.commands import Declined
from linnet.store.memory import MemoryStore
from linnet.streams.application import NAME_CHARS, Application
from linnet.streams.commands import Subscribe, Subscribed
from linnet.streams.subscribe import DURABLE, SUBSCRIBED
from linnet.trace.records import Kind, Record


class Scene:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self.context = context_of(store=store)
        self.stream = Staged("tea", self.context)
        self.ann = Voice(topic=self.stream.topic)
        self.context.cards.learn(self.ann.identity.card)

    def ask(self, command: Subscribe, now: float = NOW) -> list[object]:
        application = Application(self.context, self.stream.out)
        return asked(self.stream.out, application.subscribe, self.stream, 7, command, now)

    def answer(self, resumed: bool = False) -> Reply[Subscribed]:
        return Reply(7, Subscribed(self.stream.topic, resumed))

    def began(self, note: str = DURABLE) -> Record:
        return Record(Kind.CONTROL, self.stream.topic, note=note)


def test_a_live_one_is_answered_at_once() -> None:
    scene = Scene()
    assert scene.ask(Subscribe(1, "tea")) == [scene.answer(), scene.began(SUBSCRIBED)]
    assert not scene.stream.keeps


def test_history_is_looked_for_after_the_answer() -> None:
    scene = Scene()
    timer = SetTimer(5.0, HistoryDue(scene.stream.topic, 1))
    here = Send(scene.context.peer, History(scene.stream.topic, 1, None, 0))
    began = [scene.answer(), scene.began(SUBSCRIBED), here, timer]
    assert scene.ask(Subscribe(1, "tea", since=0.0)) == began, "what this node has comes first"


def test_a_durable_one_is_answered_when_its_place_is_durable() -> None:
    store = MemoryStore()
    scene = Scene(store)
    assert scene.ask(Subscribe(1, "tea", name="mine")) == [AfterCommit((scene.answer(), scene.began()))]
    assert scene.stream.keeps
    again = Scene(store)
    resumed = AfterCommit((again.answer(resumed=True), again.began()))
    assert again.ask(Subscribe(2, "tea", name="mine")) == [resumed]
    assert not again.stream.ingest.wants_all, "it is due what was said after it was made"
    assert again.stream.readers.since == NOW
    again.stream.readers.note_anchored()
    settled = Scene(store)
    settled.ask(Subscribe(3, "tea", name="mine"))
    assert settled.stream.ingest.wants_all, "what a storage node did not name is new"


def test_a_durable_one_from_now_on_leaves_out_what_the_log_holds() -> None:
    scene = Scene()
    unit = scene.ann.say()
    scene.stream.archive.keep(unit, NOW)
    delivered = Record(Kind.DELIVERED, scene.stream.topic, unit.head, unit.unit.device, unit.unit.seq)
    assert scene.ask(Subscribe(1, "tea", name="now")) == [AfterCommit((scene.answer(), scene.began()))]
    assert scene.ask(Subscribe(2, "tea", name="all", since=0.0)) == [
        AfterCommit((scene.answer(), scene.began())),
        AfterCommit((Deliver(2, unit.events), delivered)),
    ]


def test_what_was_seen_but_not_written_is_asked_for_by_a_durable_one_from_the_beginning() -> None:
    scene = Scene()
    scene.ask(Subscribe(1, "tea"))
    scene.stream.ingest.accept(scene.ann.say(), NOW)
    effects = scene.ask(Subscribe(2, "tea", name="all", since=0.0))
    assert SetTimer(0.5, GapDue(scene.stream.topic, scene.ann.key)) in effects


def test_what_cannot_be_is_declined() -> None:
    scene = Scene()
    scene.ask(Subscribe(1, "tea", name="mine"))
    cases = [
        (Subscribe(1, "tea"), Reason.IN_USE),
        (Subscribe(2, "tea", name="mine"), Reason.IN_USE),
        (Subscribe(2, "tea", name=""), Reason.MALFORMED),
        (Subscribe(2, "tea", name="a\nb"), Reason.MALFORMED),
        (Subscribe(2, "tea", name="x" * (NAME_CHARS + 1)), Reason.MALFORMED),
        (Subscribe(2, "tea", name="other", since=5.0), Reason.UNSUPPORTED),
        (Subscribe(2, "tea", name="other", live=False), Reason.UNSUPPORTED),
    ]
    for command, reason in cases:
        (reply,) = scene.ask(command)
        assert isinstance(reply, Reply)
        assert isinstance(reply.result, Declined)
        assert reply.result.reason is reason
        assert 2 not in scene.stream.readers


def test_a_durable_one_of_version_0_1_0_comes_back_for_everything_as_it_always_did() -> None:
    store = MemoryStore()
    scene = Scene(store)
    scene.ask(Subscribe(1, "tea", name="mine"))
    for key, _ in list(store.cells.scan("cursor.made")):
        store.cells.delete("cursor.made", key)  # 0.1.0 knew of no such thing
    again = Scene(store)
    again.ask(Subscribe(2, "tea", name="mine"))
    assert again.stream.ingest.wants_all
    assert again.stream.readers.since is None


def test_a_durable_one_whose_clock_was_set_back_misses_nothing() -> None:
    store = MemoryStore()
    Scene(store).ask(Subscribe(1, "tea", name="mine"))
    again = Scene(store)
    again.ask(Subscribe(2, "tea", name="mine"), NOW - 86_400)
    assert again.stream.readers.since == 0.0
