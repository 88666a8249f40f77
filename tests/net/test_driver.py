from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from tests.due import Due
from tests.net.live import TLS, HandHeld, LiveNode, link, named_key, ordered_keys
from tests.net.strangers import wiretap

from linnet.core.effects import AfterCommit, CancelTimer, Deliver, Dial, HangUp, Reply, Send, SetTimer
from linnet.core.errors import StoreError
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received, TimerFired
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.machine.commands import Done
from linnet.machine.protocol import Vocabulary
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.net.failure import DriverStopped, MachineFailed
from linnet.peer.interface import Effect, Examine, Input, Start
from linnet.peer.messages import SHIPPED, Bye, Needed, Ping, Pong, Unsupported
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

SMALL, LARGE = ordered_keys(2)


class SlowStore(MemoryStore):
    """A store whose commits are durable when the test says so, as told by another thread."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []
        self.commits = 0
        self.rollbacks = 0
        self.is_slow = True

    def commit(self, done: Callable[[], None]) -> None:
        self.commits += 1
        super().commit(lambda: self.waiting.append(done) if self.is_slow else done())

    def rollback(self) -> None:
        self.rollbacks += 1
        super().rollback()

    def finish(self, count: int) -> None:
        ready, self.waiting = self.waiting[:count], self.waiting[count:]
        thread = threading.Thread(target=lambda: [done() for done in ready])
        thread.start()
        thread.join()

    def hurry(self) -> None:
        self.is_slow = False
        self.finish(len(self.waiting))


class FailingStore(MemoryStore):
    """A store whose disk breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.report: Callable[[StoreError], None] = lambda error: None

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        self.report = report

    def commit(self, done: Callable[[], None]) -> None:
        """Never done."""


@pytest.mark.parametrize("scheme", ["tls", "wss", "pipe"])
async def test_a_message_goes_there_and_back(scheme: str) -> None:
    where = (f"{scheme}://127.0.0.1:0",)
    async with LiveNode(SMALL, where) as first, LiveNode(LARGE, where) as second:
        await link(first, second)
        first.act(Send(second.peer, Ping(1)))
        await second.happens(Received)
        second.act(Send(first.peer, Pong(1)))
        await first.happens(Received)
        assert first.inputs == [
            LinkUp(second.peer, second.machine.hello, True, None),
            Received(second.peer, Pong(1)),
        ]
        assert second.inputs == [
            LinkUp(first.peer, first.machine.hello, False, None),
            Received(first.peer, Ping(1)),
        ]


async def test_one_message_for_many_peers_is_encoded_once() -> None:
    encoded: list[Message] = []

    class Counting(Vocabulary):
        def encode(self, message: Message) -> bytes:
            encoded.append(message)
            return super().encode(message)

    node = LiveNode(SMALL, vocabulary=Counting(SHIPPED))
    async with node, LiveNode(LARGE) as other, LiveNode(named_key("third")) as third:
        await link(other, node)
        await link(third, node)
        message = Ping(9)
        node.act(*(Send(peer, message) for peer in (other.peer, third.peer)), Send(other.peer, Needed(True)))
        await other.until(lambda: len(other.seen(Received)) == 2)
        await third.happens(Received)
        assert other.messages(node.peer) == [Ping(9), Needed(True)]
        assert third.messages(node.peer) == [Ping(9)]
        assert encoded == [Ping(9), Needed(True)]
        node.act(Send(third.peer, message))
        await third.until(lambda: len(third.seen(Received)) == 2)
        assert encoded == [Ping(9), Needed(True), Ping(9)], "nothing is kept beyond its turn"


async def test_what_a_turn_has_for_a_peer_goes_out_in_one_write() -> None:
    """A write is one TLS record, if it is below 16 KiB, and the records can be counted on the way."""
    async with (
        LiveNode(SMALL, TLS) as node,
        wiretap(node.hints[0]) as (way, records),
        LiveNode(LARGE) as peer,
    ):
        peer.act(Dial(node.peer, (way,), False))
        await peer.happens(LinkUp)
        await node.happens(LinkUp)
        for turn in range(3):
            before, heard = len(records), len(peer.messages(node.peer))
            for number in range(40):
                node.act(Send(peer.peer, Ping(number)), Send(peer.peer, Unsupported(turn)))
            await peer.until(lambda heard=heard: len(peer.messages(node.peer)) == heard + 80)  # type: ignore[misc]
            assert len(records) == before + 1
        peer.act(HangUp(node.peer, Reason.NOT_NEEDED))
        await node.happens(LinkDown)


def answering(event: Input) -> list[Effect]:
    match event:
        case Asked(request, Start()):
            return [Reply(request, Done())]
        case Asked(request, _):
            return [SetTimer(0.01, Due("later", request.to_bytes(8, "big")))]
        case TimerFired(Due(key=key)):
            return [Reply(int.from_bytes(key, "big"), Done())]
        case _:
            return []


async def test_every_command_gets_its_own_answer() -> None:
    async with LiveNode(SMALL, machine=HandHeld(answering)) as node:
        answers = await asyncio.gather(*(node.driver.ask(Examine()) for _ in range(5)))
        assert answers == [Done()] * 5
        assert await node.driver.ask(Start()) == Done()


async def test_who_asks_a_stopped_node_is_told() -> None:
    node = LiveNode(SMALL)
    async with asyncio.TaskGroup() as group:
        async with node:
            asking = group.create_task(_refusal(node))
            await node.happens(Asked)
        assert await asking == "the node stopped before it answered"
    assert await _refusal(node) == "the node is not running"


async def _refusal(node: LiveNode) -> str:
    with pytest.raises(DriverStopped) as stopped:
        await node.driver.ask(Examine())
    return str(stopped.value)


async def test_timers_are_set_replaced_and_cancelled() -> None:
    one, two, three = Due("one"), Due("two"), Due("three")
    async with LiveNode(SMALL) as node:
        node.act(
            SetTimer(0.01, one),
            SetTimer(0.01, two),
            CancelTimer(two),
            CancelTimer(Due("never set")),
            SetTimer(30.0, three),
            SetTimer(0.05, three),
        )
        await node.until(lambda: len(node.inputs) == 2)
        assert node.inputs == [TimerFired(one), TimerFired(three)]


async def test_promises_wait_for_their_commit_and_keep_their_order() -> None:
    store = SlowStore()
    async with LiveNode(SMALL, store=store) as node, LiveNode(LARGE) as peer:
        await link(node, peer)
        store.finish(len(store.waiting))
        for number in range(3):
            node.act(
                AfterCommit((Send(peer.peer, Ping(number)), Deliver(number, (Ended(None),)))),
                Send(peer.peer, Pong(number)),
            )
            await peer.until(lambda number=number: len(peer.messages(node.peer)) == number + 1)  # type: ignore[misc]
        assert peer.messages(node.peer) == [Pong(0), Pong(1), Pong(2)], "what promises nothing does not wait"
        assert len(store.waiting) == 3
        store.finish(1)
        await peer.until(lambda: len(peer.messages(node.peer)) == 4)
        assert [delivery.subscription for delivery in node.delivered] == [0]
        store.finish(2)
        await peer.until(lambda: len(peer.messages(node.peer)) == 6)
        assert peer.messages(node.peer)[3:] == [Ping(0), Ping(1), Ping(2)]
        assert [delivery.subscription for delivery in node.delivered] == [0, 1, 2]
        peer.act(HangUp(node.peer, Reason.NOT_NEEDED))
        await node.happens(LinkDown)
        store.hurry()


async def test_a_dial_that_was_promised_is_made_when_its_commit_is_durable() -> None:
    store = SlowStore()
    async with LiveNode(SMALL, store=store) as node, LiveNode(LARGE) as peer:
        node.act(AfterCommit((Dial(peer.peer, peer.hints, False),)), SetTimer(0.05, Due("later")))
        await node.happens(TimerFired)
        assert (node.seen(LinkUp), peer.seen(LinkUp)) == ([], [])
        store.hurry()
        await node.happens(LinkUp, peer.peer)


async def test_a_dial_whose_commit_fails_is_never_made_and_the_node_ends_with_the_reason() -> None:
    store = FailingStore()

    async def run(peer: LiveNode) -> None:
        async with LiveNode(SMALL, store=store) as node:
            node.act(AfterCommit((Dial(peer.peer, peer.hints, False),)))
            await asyncio.to_thread(lambda: store.report(StoreError("no space left")))
            await asyncio.sleep(10)

    async with LiveNode(LARGE) as peer:
        with pytest.raises(StoreError, match="no space left"):
            await run(peer)
        assert peer.inputs == []


async def test_a_dial_that_is_durable_only_after_the_node_has_stopped_is_not_made() -> None:
    store = SlowStore()
    async with LiveNode(LARGE) as peer:
        async with LiveNode(SMALL, store=store, config=NetConfig(linger=0.05)) as node:
            node.act(AfterCommit((Dial(peer.peer, peer.hints, False),)))
        store.hurry()
        await asyncio.sleep(0)  # what the store's thread has told is heard now
        assert [record.reason for record in node.recorded(Kind.DROPPED)] == [Reason.TIMEOUT]
        assert peer.inputs == []


async def test_one_commit_for_the_inputs_of_a_turn() -> None:
    store = SlowStore()
    async with LiveNode(SMALL, store=store) as node:
        for number in range(50):
            node.act(AfterCommit((Deliver(number, ()),)))
        for _ in range(3):
            await asyncio.sleep(0)
        assert store.commits == 1
        store.finish(1)
        await node.until(lambda: len(node.delivered) == 50)
        assert [delivery.subscription for delivery in node.delivered] == list(range(50))


async def test_a_store_that_lags_stops_the_reading_until_it_has_caught_up() -> None:
    store = SlowStore()
    config = NetConfig(uncommitted_inputs=100)
    async with LiveNode(SMALL, store=store, config=config) as node, LiveNode(LARGE) as peer:
        await link(node, peer)
        peer.act(*(Send(node.peer, Ping(number)) for number in range(1000)))
        await node.until(lambda: len(node.inputs) >= 99)
        for _ in range(50):  # More would have come in a turn.
            await asyncio.sleep(0)
        assert len(node.inputs) <= 100
        async with asyncio.timeout(10):
            while len(node.messages(peer.peer)) < 1000:
                store.finish(len(store.waiting))
                await asyncio.sleep(0)
        assert node.messages(peer.peer) == [Ping(number) for number in range(1000)]
        store.hurry()


async def test_a_bug_in_the_machine_rolls_back_and_stops_the_node() -> None:
    store = SlowStore()

    def broken(event: Input) -> list[Effect]:
        if isinstance(event, Received):
            store.cells.put("test", b"key", b"value")
            raise ZeroDivisionError("a bug")
        return []

    node = LiveNode(SMALL, store=store, machine=HandHeld(broken))
    async with LiveNode(LARGE) as peer:

        async def run() -> None:
            async with node:
                await link(node, peer)
                store.finish(len(store.waiting))
                peer.act(Send(node.peer, Ping(1)), Send(node.peer, Ping(2)))
                await asyncio.sleep(10)

        with pytest.raises(
            MachineFailed, match="handling Received raised ZeroDivisionError: a bug"
        ) as failed:
            await run()
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        assert node.messages(peer.peer) == [Ping(1)], "nothing is handled after it"
        assert store.rollbacks == 1
        assert store.cells.get("test", b"key") is None
        (record,) = node.recorded(Kind.DROPPED)
        assert record.reason is Reason.BUG
        assert (await peer.happens(LinkDown)).reason is Reason.BUG
        with pytest.raises(DriverStopped):
            await node.driver.ask(Examine())


async def test_no_effect_of_a_failed_input_is_performed() -> None:
    def broken(event: Input) -> list[Effect]:
        raise RuntimeError("a bug")

    node = LiveNode(SMALL, machine=HandHeld(broken))

    async def run() -> None:
        async with node:
            node.act(AfterCommit((Deliver(1, ()),)))
            node.driver.put(TimerFired(Due("boom")))
            await asyncio.sleep(10)

    with pytest.raises(MachineFailed):
        await run()
    assert node.delivered == [], "a promise of the same batch is not kept either"


async def test_an_application_that_fails_on_delivery_stops_the_node() -> None:
    async def run(*effects: Effect) -> None:
        async with LiveNode(SMALL) as node:
            node.delivered = None  # type: ignore[assignment]
            node.act(*effects)
            await asyncio.sleep(10)

    with pytest.raises(MachineFailed, match="AttributeError"):
        await run(Deliver(1, ()))
    with pytest.raises(MachineFailed, match="handling Deliver raised AttributeError"):
        await run(AfterCommit((Deliver(1, ()),)))


async def test_a_store_that_fails_stops_the_node() -> None:
    store = FailingStore()
    node = LiveNode(SMALL, store=store)

    async def run() -> None:
        async with node:
            node.act(AfterCommit((Deliver(1, ()),)))
            await asyncio.to_thread(lambda: store.report(StoreError("no space left")))
            await asyncio.sleep(10)

    with pytest.raises(StoreError, match="no space left"):
        await run()
    assert node.delivered == []


async def test_a_task_that_fails_ends_the_node_with_its_own_error() -> None:
    async def broken() -> None:
        raise OSError("no such luck")

    node = LiveNode(SMALL)

    async def run() -> None:
        async with node:
            task = node.driver.spawn(broken(), "broken")
            await asyncio.wait((task,))
            # What happens before the group has ended the body is not what the node is said to fail of.
            node.act(Dial(LiveNode(LARGE).peer, (), False))
            await asyncio.sleep(10)

    with pytest.raises(OSError, match="no such luck"):
        await run()


async def test_an_error_of_the_body_leaves_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with LiveNode(SMALL):
            raise KeyError("the caller's own")


async def test_a_node_that_stops_says_so() -> None:
    async with LiveNode(LARGE) as peer:
        async with LiveNode(SMALL) as node:
            await link(node, peer)
        assert (await peer.happens(LinkDown)).reason is Reason.SHUTDOWN
        assert node.recorded(Kind.LINK_DOWN) == [
            Record(Kind.LINK_DOWN, peer=peer.peer, reason=Reason.SHUTDOWN)
        ]
        assert node.seen(LinkDown) == [], "a machine that has stopped is told nothing"


async def test_what_is_sent_without_a_link_is_traced() -> None:
    async with LiveNode(SMALL) as node:
        node.act(Send(ordered_keys(2)[1].public, Ping(1)))  # type: ignore[arg-type]
        record = await node.traced(Kind.DROPPED)
        assert (record.reason, record.note) == (Reason.UNREACHABLE, "Ping")


async def test_a_step_of_the_wall_clock_is_traced() -> None:
    wall = 1000.0
    clock = Clock(wall=lambda: wall, monotonic=lambda: 5.0)
    async with LiveNode(SMALL, config=NetConfig(sweep_period=0.01), clock=clock) as node:
        wall += 0.9
        await asyncio.sleep(0.05)
        assert node.records == []
        wall -= 3600.0
        record = await node.traced(Kind.CONTROL)
        assert record.reason is Reason.CLOCK_STEP
        assert record.note == "the wall clock was set by -3599.100 s"


async def test_bye_is_never_the_machines() -> None:
    async with LiveNode(SMALL) as node, LiveNode(LARGE) as peer:
        await link(node, peer)
        node.act(Send(peer.peer, Bye(Reason.NOT_NEEDED)))
        assert (await peer.happens(LinkDown)).reason is Reason.NOT_NEEDED
        assert peer.seen(Received) == []
