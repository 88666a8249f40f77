"""Messages about what nodes keep for each other: filters, routes of those who are gone, and ledgers."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from linnet.content.backups import Backups
from linnet.content.config import ContentConfig
from linnet.content.copies import Copies
from linnet.content.effects import ContentEffect
from linnet.content.lately import WentBy
from linnet.content.messages import Backup, Held, Keepers, Kept, Log, Logged, Routes, StandIn
from linnet.content.notices import Notices
from linnet.content.passing import check, check_asked
from linnet.content.reach import Reach
from linnet.content.replays import Replays
from linnet.content.routes import RouteBook
from linnet.content.trackers import Trackers
from linnet.core.ids import PeerId
from linnet.delivery.context import Context

KeepingMessage: TypeAlias = Backup | Kept | StandIn | Routes | Held | Keepers | Log | Logged


class Keeping:
    """What others keep for this node, and what it keeps for them."""

    def __init__(
        self,
        context: Context,
        config: ContentConfig,
        reach: Reach,
        book: RouteBook,
        copies: Copies,
        backups: Backups,
        notices: Notices,
        replays: Replays,
    ) -> None:
        self._context = context
        self._config = config
        self._reach = reach
        self._book = book
        self._copies = copies
        self._backups = backups
        self._notices = notices
        self._replays = replays
        self.trackers = Trackers(config, reach, backups)

    def on_message(self, peer: PeerId, message: KeepingMessage, now: float) -> list[ContentEffect]:
        """A message of a peer; `RemoteError` if something is wrong with it."""
        match message:
            case Backup():
                self._copies.keep(peer, message)
                return self._reach.answer(peer, Kept(message.number, None))
            case Kept():
                return self.replaced(self._backups.kept(peer, message, now), now)
            case StandIn():
                answers = self._copies.answers(message)
                return [effect for answer in answers for effect in self._reach.answer(peer, answer)]
            case Routes():
                return self._notices.routed(peer, message, now)
            case Held():
                return self._notices.held(peer, message, now)
            case Keepers(backups):
                self._book.learn(peer, backups, self._reach.contact(peer))
                return []
            case Log():
                passing = check(message.unit, message.card, self._context, self._config, now)
                check_asked(message.attribute, passing.attributes, message.hops)
                way = (passing.id, message.attribute)
                return self.trackers.log(peer, way, passing, message.hops, now)
            case Logged():
                effects = self.trackers.logged(peer, message)
                for way, passing, hops in self.trackers.ended:
                    effects += self._replays.tracked(WentBy(now, way, passing, hops, peer), now)
                self.trackers.ended.clear()
                return effects
            case _:
                assert_never(message)

    def replaced(self, effects: list[ContentEffect], now: float) -> list[ContentEffect]:
        """If others keep our filters now, those have to know who send us what we asked for."""
        for peer in self._backups.untold(now):
            effects += self._reach.answer(peer, Keepers(self._backups.contacts(now)))
        return effects

    def tidy(self, now: float) -> None:
        """A period is over: what was not told again for long is forgotten."""
        self._copies.turn()
        self.trackers.tidy(now)
