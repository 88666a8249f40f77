"""Reaches a peer by its key: tries every known address until one shows the right key.

Addresses are tried in their order, each a moment after the one before (as in RFC 8305), whatever transport
they belong to. Only the connection and the server's key are raced; our identity is revealed to the winner
alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
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

_Attempt = asyncio.Task[Connection | LinkFailure]


class Dialer:
    """Dials over all transports of a node."""

    def __init__(self, transports: Sequence[Transport], config: NetConfig) -> None:
        self._transports = transports
        self._config = config
        self._sockets = asyncio.Semaphore(config.max_dials)

    async def reach(
        self, peer: PeerId, hints: Iterable[str], may_try: Callable[[str], bool] = lambda place: True
    ) -> Connection:
        """Return a connection to the holder of this key, at the first address that shows it.

        `may_try` is asked about each resolved address; what it forbids counts as unreachable.

        At an address of a local network the key in that address is shown instead: `Connection.remote_key` is
        that key. `LinkFailure` carries the reason of the address that got furthest.
        """
        failures: list[LinkFailure] = []
        try:
            async with asyncio.timeout(self._config.dial_timeout):
                found = await self._resolve(hints, failures)
                places = deque(place for place in found if may_try(place))
                if len(places) < len(found):
                    failures.append(LinkFailure(Reason.UNREACHABLE, "an address not tried for others"))
                connection = await self._race(peer, places, failures)
        except TimeoutError:
            failures.append(LinkFailure(Reason.DIAL_TIMEOUT, "no address answered in time"))
        else:
            if connection is not None:
                return connection
        if not failures:
            raise LinkFailure(Reason.NO_ADDRESS, "no address of this peer is known")
        raise min(failures, key=_rank)

    async def _resolve(self, hints: Iterable[str], failures: list[LinkFailure]) -> deque[str]:
        places: dict[str, None] = {}
        for hint in hints:
            try:
                places |= dict.fromkeys(await find_transport(hint, self._transports).resolve(hint))
            except LinkFailure as failure:
                failures.append(failure)
        return deque(places)

    async def _race(self, peer: PeerId, places: deque[str], failures: list[LinkFailure]) -> Connection | None:
        attempts: list[_Attempt] = []
        winner: Connection | None = None
        try:
            async with asyncio.TaskGroup() as group:
                while winner is None and (places or not all(attempt.done() for attempt in attempts)):
                    if places:
                        place = places.popleft()
                        attempts.append(group.create_task(self._attempt(peer, place), name=f"dial {place}"))
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

    async def _attempt(self, peer: PeerId, place: str) -> Connection | LinkFailure:
        try:
            async with self._sockets:
                return await find_transport(place, self._transports).dial(place, peer)
        except LinkFailure as failure:
            return failure


def _close_losers(attempts: list[_Attempt], winner: Connection | None) -> None:
    for attempt in attempts:
        if attempt.done() and not attempt.cancelled() and attempt.exception() is None:
            result = attempt.result()
            if not isinstance(result, LinkFailure) and result is not winner:
                result.close()


def _rank(failure: LinkFailure) -> int:
    return _TELLING.index(failure.reason) if failure.reason in _TELLING else len(_TELLING)
