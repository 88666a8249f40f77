"""Reaches a peer by its key: tries every known address until one shows the right key.

Addresses are tried in their order, each a moment after the one before (as in RFC 8305), whatever transport
they belong to. Only the connection and the server's key are raced; our identity is revealed to the winner
alone.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.address import name_in
from linnet.net.config import NetConfig
from linnet.net.dial_budget import DialBudget, Turn
from linnet.net.failure import LinkFailure, WrongKey
from linnet.net.transport import Connection, Transport, find_transport

_TELLING = (
    Reason.WRONG_KEY,
    Reason.TLS_FAILED,
    Reason.PROTOCOL_ERROR,
    Reason.CONNECTION_REFUSED,
    Reason.DIAL_TIMEOUT,
    Reason.UNREACHABLE,
    Reason.NO_ADDRESS,
)
"""Failure reasons, those that got furthest first: where several addresses fail, these tell most."""

_MOST_PLACES = 8
"""The most addresses at which one dial tries a peer."""
_KNOWN_FOR = 25.0
"""Seconds for which the addresses of a name are known: less than the longest pause between dials."""
_NO_NETWORK = (errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)
"""Errors that say that this machine has no way to an address now."""
_NAMES = 1024
"""The most names whose addresses are remembered."""


class _Outcome:
    """What became of an attempt."""

    is_answered = False
    has_left = True
    """Whether anything may have been sent to where it leads."""


_Attempt = asyncio.Task[Connection | LinkFailure]
_Place = tuple[str, str | None]
"""A resolved address, and the host name that stood for it, if one did."""


class Dialer:
    """Dials over all transports of a node."""

    def __init__(
        self, transports: Sequence[Transport], config: NetConfig, clock: Callable[[], float]
    ) -> None:
        """`clock` tells a time in seconds that is never set back."""
        self._transports = transports
        self._config = config
        self._sockets = asyncio.Semaphore(config.max_dials)
        self._clock = clock
        self._budget = DialBudget()
        self._ended = asyncio.Event()
        """Set when an attempt ends; another one takes its place."""
        self._looked_up: dict[str, tuple[float, Sequence[str] | LinkFailure]] = {}
        """What names stood for, and when; the latest are last."""

    async def reach(
        self,
        peer: PeerId,
        hints: Iterable[str],
        may_try: Callable[[str], bool] = lambda place: True,
        is_free: bool = False,
    ) -> Connection:
        """Return a connection to the holder of this key, at the first address that shows it.

        `may_try` is asked about each resolved address; what it forbids counts as unreachable. With `is_free`
        no budget applies: the addresses are our own user's choice, or `may_try` has its own bounds.

        At an address of a local network the key in that address is shown instead: `Connection.remote_key` is
        that key. `LinkFailure` carries the reason of the address that got furthest.
        """
        failures: list[LinkFailure] = []
        try:
            async with asyncio.timeout(self._config.dial_timeout):
                found = await self._resolve(hints, is_free, failures)
                allowed = [each for each in found.items() if may_try(each[0])]
                if len(allowed) < len(found):
                    failures.append(LinkFailure(Reason.UNREACHABLE, "an address not tried for others"))
                places = deque(allowed[:_MOST_PLACES])
                connection = await self._race(peer, places, is_free, failures)
        except TimeoutError:
            failures.append(LinkFailure(Reason.DIAL_TIMEOUT, "no address answered in time"))
        else:
            if connection is not None:
                return connection
        if not failures:
            raise LinkFailure(Reason.NO_ADDRESS, "no address of this peer is known")
        raise min(failures, key=_rank)

    async def _resolve(
        self, hints: Iterable[str], is_free: bool, failures: list[LinkFailure]
    ) -> dict[str, str | None]:
        """Return the addresses of these hints, each with the host name that stands for it, if one does."""
        places: dict[str, str | None] = {}
        for hint in hints:
            try:
                found = await self._look_up(hint, is_free)
            except LinkFailure as failure:
                failures.append(failure)
            else:
                places = {**places, **{each: name_in(hint) for each in found if each not in places}}
        return places

    async def _look_up(self, hint: str, is_free: bool) -> Sequence[str]:
        """Return the addresses of a hint; those of a name are looked up once in a while."""
        transport = find_transport(hint, self._transports)
        name = name_in(hint)
        if name is None:
            return await transport.resolve(hint)
        now = self._clock()
        known = self._looked_up.get(hint)
        if is_free and known is not None and isinstance(known[1], LinkFailure):
            known = None  # The user may have mended it.
        if known is None or not 0 <= now - known[0] < _KNOWN_FOR:
            if not is_free and not self._budget.may_look_up(name, now):
                raise LinkFailure(
                    Reason.UNREACHABLE, f"too many names like {name!r} were looked up for others"
                )
            try:
                known = now, await transport.resolve(hint)
            except LinkFailure as failure:
                known = now, failure
            self._looked_up.pop(hint, None)
            self._looked_up[hint] = known
            if len(self._looked_up) > _NAMES:
                del self._looked_up[next(iter(self._looked_up))]
        if isinstance(known[1], LinkFailure):
            raise LinkFailure(known[1].reason, known[1].detail)
        return known[1]

    async def _race(
        self, peer: PeerId, places: deque[_Place], is_free: bool, failures: list[LinkFailure]
    ) -> Connection | None:
        attempts: list[_Attempt] = []
        winner: Connection | None = None
        try:
            async with asyncio.TaskGroup() as group:
                while winner is None and (places or not all(attempt.done() for attempt in attempts)):
                    if places:
                        place = places.popleft()
                        attempts.append(group.create_task(self._attempt(peer, place, is_free)))
                    running = [attempt for attempt in attempts if not attempt.done()]
                    wait = self._config.dial_stagger if places else None
                    done, _ = await asyncio.wait(running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                    for attempt in done:
                        result = attempt.result()
                        if isinstance(result, LinkFailure):
                            failures.append(result)
                        elif winner is None:
                            winner = result
                for attempt in attempts:
                    attempt.cancel()
        except BaseException:
            _close_losers(attempts, None)
            raise
        _close_losers(attempts, winner)
        return winner

    async def _attempt(self, peer: PeerId, where: _Place, is_free: bool) -> Connection | LinkFailure:
        place, name = where
        try:
            async with self._sockets, self._in_turn(peer, place, is_free) as attempt:
                try:
                    connection = await find_transport(place, self._transports).dial(place, peer)
                except LinkFailure as failure:
                    cause = failure.__cause__
                    attempt.has_left = not (isinstance(cause, OSError) and cause.errno in _NO_NETWORK)
                    raise
                attempt.is_answered = True
                if name is not None:
                    self._budget.note_led(name)
                return connection
        except LinkFailure as failure:
            if isinstance(failure, WrongKey):
                self._budget.note_found(failure.found, place)
            return failure

    @asynccontextmanager
    async def _in_turn(self, peer: PeerId, place: str, is_free: bool) -> AsyncIterator[_Outcome]:
        """Wait until the budget has room for an attempt, and tell it what became of it."""
        attempt = _Outcome()
        while not is_free and (turn := self._budget.take(peer, place, self._clock())) is not Turn.GO:
            if turn is Turn.REFUSED:
                raise LinkFailure(
                    Reason.UNREACHABLE, f"too many attempts at {place} or near it went unanswered"
                )
            await self._ended.wait()
        try:
            yield attempt
        finally:
            if not is_free or attempt.is_answered:
                self._budget.give_back(peer, place, attempt.is_answered, self._clock(), attempt.has_left)
            self._ended.set()  # Wakes all that wait now.
            self._ended = asyncio.Event()


def _close_losers(attempts: list[_Attempt], winner: Connection | None) -> None:
    for attempt in attempts:
        if attempt.done() and not attempt.cancelled() and attempt.exception() is None:
            result = attempt.result()
            if not isinstance(result, LinkFailure) and result is not winner:
                result.close()


def _rank(failure: LinkFailure) -> int:
    return _TELLING.index(failure.reason) if failure.reason in _TELLING else len(_TELLING)
