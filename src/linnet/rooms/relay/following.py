"""Members who asked to be told what comes, as it comes, for as long as their link lasts.

What is pushed waits in the link's own outbox, which is bounded: a follower that does not read loses its
link (``slow_peer``) and asks again from its cursor. Nothing is queued here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.rooms.messages import ResyncPage
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.ingest import Fresh, Turn
from linnet.rooms.relay.paging import Pages
from linnet.rooms.relay.serving import Serving


class _Follower:
    __slots__ = ("caller", "position", "request")

    def __init__(self, caller: Caller, request: int, position: int) -> None:
        self.caller = caller
        self.request = request
        self.position = position
        """Everything up to here was sent."""


class Following:
    """The followers of one room."""

    def __init__(self, serving: Serving, pages: Pages) -> None:
        self._serving = serving
        self._pages = pages
        self._followers: dict[PeerId, _Follower] = {}

    def __len__(self) -> int:
        return len(self._followers)

    def begin(self, caller: Caller, request: int, position: int) -> None:
        """Push what comes from now on to a caller that has everything up to a position."""
        self._followers[caller.peer] = _Follower(caller, request, position)

    def end(self, peer: PeerId) -> None:
        """Push nothing more to a peer that wants no more, or whose link is gone."""
        self._followers.pop(peer, None)

    def expel_followers(
        self, why: Callable[[Caller], Reason | None], send: Callable[[PeerId, ResyncPage], None]
    ) -> None:
        """Tell those followers that may not read any more why that is so, and nothing else after it."""
        for peer, follower in list(self._followers.items()):
            reason = why(follower.caller)
            if reason is not None:
                del self._followers[peer]
                send(peer, self._serving.refusal(follower.request, reason))

    def push_events(self, turn: Turn, end: int) -> None:
        """Promise to every follower what has come in a turn; `end` is the end of the log now."""
        for peer, follower in self._followers.items():
            news = [each for each in turn.fresh if each.position > follower.position]
            for units, at in self._cut(news, peer, end):
                page = self._serving.pushed(follower.caller, follower.request, units, follower.position, at)
                follower.position = at
                turn.promise_send(peer, page)
            if not news and self._serving.has_news_beside(follower.caller):
                page = self._serving.pushed(follower.caller, follower.request, (), follower.position, end)
                follower.position = end
                turn.promise_send(peer, page)

    def _cut(self, news: list[Fresh], peer: PeerId, end: int) -> Iterator[tuple[tuple[Unverified, ...], int]]:
        """Pages of what is new, without what the follower brought itself."""
        others = [each for each in news if each.source != peer]
        if news and not others:
            yield (), end
        while others:
            units, count = self._pages.within((each.event, each.unit) for each in others)
            rest = others[count:]
            yield tuple(units), others[count - 1].position if rest else end
            others = rest
