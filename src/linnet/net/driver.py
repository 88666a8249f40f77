"""The driver of a node: performs the effects of its machine over real links, in real time.

Inputs are handled one after the other; the effects of one are performed before the next is handled. At the
end of a loop turn everything handled in it is committed with one call, and the data for each link are written
at once. A message to many peers is encoded once.

A promise waits here until the store has kept what it promises: durable before visible.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, assert_never

from linnet.core.effects import (
    AfterCommit,
    Announce,
    CancelTimer,
    Deliver,
    Dial,
    HangUp,
    Meet,
    Probe,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.errors import StoreError
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, Congested, Drained, Received, TimerFired
from linnet.core.limits import FRAME_BYTES, MIB
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.keys import SigningKey
from linnet.machine.protocol import Vocabulary
from linnet.net import sodium
from linnet.net.clock import Clock, Timers
from linnet.net.config import LanConfig, NetConfig
from linnet.net.failure import DriverStopped, MachineFailed
from linnet.net.link import Link
from linnet.net.link_table import LinkTable
from linnet.net.local_keys import LocalKeys
from linnet.net.local_networks import LocalNetworks
from linnet.net.pipe import PipeTransport
from linnet.net.tls_transport import TlsTransport
from linnet.net.transport import Transport, TransportListener
from linnet.peer.interface import AnyCommand, Effect, Handed, Input, NodeMachine, Promise
from linnet.peer.messages import STANDARD
from linnet.store.base import CommittingStore
from linnet.trace.records import Kind, Record, TraceSink
from linnet.wire.frame import HEADER_BYTES, frame

BACKLOG_BYTES = 64 * MIB
"""The bytes that the store may be behind; past this nothing more is read, however few the inputs."""


class _Batch:
    """The inputs handled between two commits, counted, and the promises that wait for the second."""

    __slots__ = ("inputs", "promises")

    def __init__(self) -> None:
        self.inputs = 0
        self.promises: list[Promise] = []


class Commits:
    """The promises of one driver, in the order in which they were made."""

    def __init__(
        self,
        store: CommittingStore,
        perform: Callable[[Promise], None],
        landed: Callable[[], None],
        limit: int,
    ) -> None:
        self._store = store
        self._perform = perform
        self._has_landed = landed
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._batch = _Batch()
        self._uncommitted = 0
        self._flying: deque[_Batch] = deque()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def is_behind(self) -> bool:
        """Whether the store is so far behind that nothing more should be handled."""
        return self._uncommitted >= self._limit or self._store.backlog > BACKLOG_BYTES

    def handled(self) -> None:
        """Note that an input was handled, so that there may be something to commit."""
        self._batch.inputs += 1
        self._uncommitted += 1

    def hold(self, promises: Iterable[Promise]) -> None:
        """Perform promises after the next commit."""
        self._batch.promises.extend(promises)

    def commit(self) -> None:
        """Commit everything handled since the last call. Raises `StoreError` if writing has failed."""
        if not self._batch.inputs:
            return
        self._flying.append(self._batch)
        self._batch = _Batch()
        self._settled.clear()
        self._store.commit(self._done)

    def abandon(self) -> None:
        """Forget everything since the last commit, in the store too."""
        self._batch = _Batch()
        self._store.rollback()

    async def settled(self, limit: float) -> bool:
        """Wait until no commit is under way; return whether that came within so many seconds."""
        try:
            async with asyncio.timeout(limit):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def give_up(self) -> None:
        """Stop waiting for commits to land: the store has failed."""
        self._flying.clear()
        self._settled.set()

    def _done(self) -> None:
        if threading.get_ident() == self._thread:
            self._land()
        else:
            self._loop.call_soon_threadsafe(self._land)

    def _land(self) -> None:
        if not self._flying:
            return
        batch = self._flying.popleft()
        self._uncommitted -= batch.inputs
        if not self._flying:
            self._settled.set()
        for promise in batch.promises:
            self._perform(promise)
        self._has_landed()


def default_transports(key: SigningKey, config: NetConfig) -> list[Transport]:
    """Return the transports of a node without others: TLS, and pipes within its process."""
    return [TlsTransport(key, config), PipeTransport(key)]


class Driver:
    """One node: its machine, its links, its timers, its store, on one event loop.

    Used as an asynchronous context: inside it the node runs. If the machine fails, the body is
    cancelled and the context ends with `MachineFailed`; if the store fails, with `StoreError`.
    """

    def __init__(
        self,
        machine: NodeMachine,
        key: SigningKey,
        store: CommittingStore,
        trace: TraceSink,
        transports: Sequence[Transport],
        listeners: Sequence[TransportListener],
        config: NetConfig,
        on_deliver: Callable[[Deliver[Handed]], None],
        clock: Clock,
        vocabulary: Vocabulary = STANDARD,
        lan: LanConfig | None = None,
        chosen: frozenset[PeerId] = frozenset(),
    ) -> None:
        """`chosen` are the peers that the user's configuration names."""
        self._machine = machine
        self._chosen = chosen
        self._key = key
        self._own = PeerId(key.public)
        self._store = store
        self._trace = trace
        self._transports = transports
        self._listeners = listeners
        self._config = config
        self._on_deliver = on_deliver
        self._clock = clock
        self.vocabulary = vocabulary
        """See `LinkOwner`."""
        self._lan = lan
        self._local_networks: LocalNetworks | None = None
        self._inputs: deque[Input] = deque()
        self._is_handling = False
        self._is_running = False
        self._requests = 0
        self._answers: dict[int, asyncio.Future[object]] = {}
        self._dirty: dict[Link, None] = {}
        self._encode = vocabulary.encode
        self._frames: dict[int, tuple[Message, bytes]] = {}
        self._turn_scheduled = False
        self._stalled_links = False
        self._unfinished = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.turn = 0
        """See `LinkOwner`."""
        sodium.tidy()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._failure: asyncio.Future[BaseException] = self._loop.create_future()
        self._commits = Commits(
            self._store, self._keep_promise, self._commit_landed, self._config.uncommitted_inputs
        )
        self._timers = Timers(self._timer_fired)
        keys = LocalKeys(self._key)
        self._links = LinkTable(self._key, self, self._transports, self._config, keys)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._is_running = True
        self._store.on_failure(self._store_failed)
        self.spawn(self._watch(), "watch for failure")
        self.spawn(self._sweep(), "sweep")
        for listener in self._listeners:
            self._links.serve(listener)
        if self._lan is not None:
            self._local_networks = LocalNetworks(self, self._links, keys, self._lan, self._config)
            self.spawn(self._local_networks.run(), "watch local networks")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._wind_down()
        finally:
            for task in list(self._tasks):
                task.cancel()
            failed = self._failure.result() if self._failure.done() else None
            try:
                # The group is told of a cancellation only; other errors of the body are not its own.
                if isinstance(error, asyncio.CancelledError):
                    await self._group.__aexit__(kind, error, trace)
                else:
                    await self._group.__aexit__(None, None, None)
            except BaseExceptionGroup:
                if failed is None:
                    raise
            if failed is not None:
                raise failed

    async def ask(self, command: AnyCommand) -> object:
        """Give the node a command and return its answer; `DriverStopped` if the node stops before.

        Raises `StoreError` if the store fails before.
        """
        if not self._is_running:
            raise DriverStopped("the node is not running")
        self._requests += 1
        request = self._requests
        answer: asyncio.Future[object] = self._loop.create_future()
        self._answers[request] = answer
        try:
            self.put(Asked(request, command))
            return await answer
        except asyncio.CancelledError:
            self.raise_store_failure()
            raise
        finally:
            self._answers.pop(request, None)

    def raise_store_failure(self) -> None:
        """Raise the `StoreError` by which the node ended, if it did.

        The end of the node cancels the tasks that wait inside it. They get this error instead: an application
        that is cancelled without a reason would take that for its own end.
        """
        failed = self._failure.result() if self._failure.done() else None
        if isinstance(failed, StoreError):
            # One error for each waiting task: an error that is raised in several tasks comes to stand in its
            # own context, and an `AsyncExitStack` follows such a ring for ever.
            raise StoreError(*failed.args) from failed

    @property
    def hello(self) -> Hello:
        """See `LinkTableOwner`."""
        return self._machine.hello

    @property
    def is_stalled(self) -> bool:
        """See `LinkOwner`."""
        return not self._is_running or self._commits.is_behind

    def now(self) -> float:
        """See `LinkOwner`."""
        return self._clock.now()

    def record(self, record: Record) -> None:
        """See `LinkOwner`."""
        self._trace.write(self._own, record, self._clock.now())

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """See `LinkTableOwner`."""
        task = self._group.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """End the node with the error of a task that failed, and not with an error that follows from it."""
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def put(self, event: Input) -> None:
        """Handle an input, after those that wait."""
        self._inputs.append(event)
        if not self._is_handling and self._is_running:
            self._handle_waiting()

    def message_received(self, link: Link, message: Message) -> None:
        """See `LinkOwner`."""
        self.put(Received(link.peer, message))

    def link_dirty(self, link: Link) -> None:
        """See `LinkOwner`."""
        self._dirty[link] = None
        self._end_turn_soon()

    def link_holds(self, more: int) -> None:
        """See `LinkOwner`."""
        self._unfinished += more
        while self._unfinished > self._config.unfinished_bytes:
            greediest = max(self._links.links, key=lambda link: link.unfinished)
            greediest.cut(Reason.SLOW_PEER, f"{greediest.unfinished} bytes of a frame wait for the rest")
            greediest.abort()

    def link_congested(self, link: Link, congested: bool) -> None:
        """See `LinkOwner`."""
        self.put(Congested(link.peer) if congested else Drained(link.peer))

    def link_ended(self, link: Link, reason: Reason) -> None:
        """See `LinkOwner`."""
        self._links.handle_link_end(link, reason)

    def _handle_waiting(self) -> None:
        self._is_handling = True
        try:
            while self._inputs and self._is_running:
                event = self._inputs.popleft()
                try:
                    effects = self._machine.handle(event, self._clock.now())
                    self._commits.handled()
                    for effect in effects:
                        self._perform(effect)
                except StoreError as error:  # It cannot be read: not a bug of the machine.
                    with suppress(StoreError):
                        self._commits.abandon()
                    self._fail(error)
                    return
                except Exception as error:  # Whatever it is, it is a bug of ours, reported whole.
                    self._machine_failed(event, error)
                    return
        finally:
            self._is_handling = False
        self._end_turn_soon()

    def _keep_promise(self, promise: Promise) -> None:
        try:
            self._perform(promise)
        except Exception as error:  # As above.
            self._machine_failed(promise, error)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send(peer, message):
                self._send(peer, message)
            case Record():
                self.record(effect)
            case AfterCommit(promises):
                self._commits.hold(promises)
            case Deliver():
                self._on_deliver(effect)
            case Reply(request, result):
                answer = self._answers.pop(request, None)
                if answer is not None and not answer.done():
                    answer.set_result(result)
            case SetTimer(delay, timer):
                self._timers.set(delay, timer)
            case CancelTimer(timer):
                self._timers.cancel(timer)
            case Dial() | Probe() | HangUp():
                self._perform_on_links(effect)
            case Announce() | Meet():
                self._perform_locally(effect)
            case _:
                assert_never(effect)

    def _perform_on_links(self, effect: Dial | Probe | HangUp) -> None:
        match effect:
            case Dial(peer, hints, is_ours):
                self._links.dial(peer, hints, is_ours or peer in self._chosen)
            case Probe(peer, hints):
                self._links.probe(peer, hints)
            case HangUp(peer, reason):
                link = self._links.get(peer)
                if link is not None:
                    link.hang_up(reason)
            case _:
                assert_never(effect)

    def _perform_locally(self, effect: Announce | Meet) -> None:
        if self._local_networks is not None:
            self._local_networks.perform(effect)
            return
        note = f"{type(effect).__name__}: no local network is watched"
        self.record(Record(Kind.DROPPED, reason=Reason.UNSUPPORTED, note=note))

    def _send(self, peer: PeerId, message: Message) -> None:
        link = self._links.get(peer)
        if link is None:
            note = type(message).__name__
            self.record(Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=note))
            return
        known = self._frames.get(id(message))
        if known is None:
            # The message is kept beside its bytes: as long as it lives no other message has its id.
            known = self._frames[id(message)] = message, self._frame(message)
        data = known[1]
        if not HEADER_BYTES <= len(data) <= HEADER_BYTES + link.hello.max_frame:
            note = type(message).__name__
            self.record(Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_LARGE, note=note))
            return
        link.send(data, isinstance(message, self.vocabulary.bulk))

    def _frame(self, message: Message) -> bytes:
        """Return the frame of a message; nothing if it is too long for any node to read."""
        payload = self._encode(message)
        return frame(payload) if len(payload) <= FRAME_BYTES else b""

    def _end_turn_soon(self) -> None:
        if not self._turn_scheduled and self._is_running:
            self._turn_scheduled = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_scheduled = False
        self.turn += 1
        self._frames.clear()
        if not self._is_running:
            return
        try:
            self._commits.commit()
        except StoreError as error:
            self._fail(error)
            return
        dirty, self._dirty = self._dirty, {}
        for link in dirty:
            link.flush()
        self._wake_links()

    def _commit_landed(self) -> None:
        if self._stalled_links:
            self._end_turn_soon()

    def _wake_links(self) -> None:
        """Let links go on that had to wait for the store."""
        if self.is_stalled:
            self._stalled_links = True
        elif self._stalled_links:
            self._stalled_links = False
            for link in self._links.links:
                link.work()

    def _timer_fired(self, tick: Timer) -> None:
        self.put(TimerFired(tick))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._config.sweep_period)
            now = self._clock.now()
            for link in self._links.links:
                link.check_age(now)
            step = self._clock.step()
            if step is not None:
                note = f"the wall clock was set by {step:+.3f} s"
                self.record(Record(Kind.CONTROL, reason=Reason.CLOCK_STEP, note=note))

    async def _watch(self) -> None:
        raise await asyncio.shield(self._failure)

    def _machine_failed(self, event: Input | Promise, error: Exception) -> None:
        failure = MachineFailed(event, error)
        failure.__cause__ = error
        self._commits.abandon()
        self.record(Record(Kind.DROPPED, reason=Reason.BUG, note=str(failure)[:200]))
        self._fail(failure)

    def _store_failed(self, error: StoreError) -> None:
        # Perhaps from a thread of the store.
        self._loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._commits.give_up()
        self._is_running = False
        if not self._failure.done():
            self._failure.set_result(error)

    async def _wind_down(self) -> None:
        failed = self._failure.done()
        if not failed:
            self._commits.commit()
            if not await self._commits.settled(self._config.linger):
                note = "the store did not finish; what it was to keep is promised to nobody"
                self.record(Record(Kind.DROPPED, reason=Reason.TIMEOUT, note=note))
        self._is_running = False
        self._timers.clear()
        # First the waiting, then the socket: a loop must not wait for a descriptor that is reused.
        self._links.stop_serving()
        if self._local_networks is not None:
            self._local_networks.close()
        for listener in self._listeners:
            listener.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(DriverStopped("the node stopped before it answered"))
        await self._links.hang_up_all(Reason.BUG if failed else Reason.SHUTDOWN)
