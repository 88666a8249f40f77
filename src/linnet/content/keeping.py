"""Messages about what nodes keep for each other: filters, routes of those who are gone, and ledgers."""

from __future__ import annotations

from linnet.content.backups import Backups
from linnet.content.config import ContentConfig
from linnet.content.copies import Copies
from linnet.content.lately import WentBy
from linnet.content.messages import Backup, Keepers, Kept, Log, Logged, StandIn
from linnet.content.notices import Notices
from linnet.content.passing import check, check_asked
from linnet.content.reach import Reach
from linnet.content.replays import Replays
from linnet.content.routes import RouteBook
from linnet.content.trackers import Trackers
from linnet.core.ids import PeerId
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox


class Keeping:
    """What others keep for this node, and what it keeps for them.

    Its handlers raise `RemoteError` if something is wrong with a message.
    """

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
        out: Outbox,
    ) -> None:
        self._context = context
        self._config = config
        self._reach = reach
        self._book = book
        self._copies = copies
        self._backups = backups
        self._notices = notices
        self._replays = replays
        self.trackers = Trackers(config, reach, backups, out)

    def handle_backup(self, peer: PeerId, message: Backup, now: float) -> None:
        """Keep filters of a peer."""
        self._copies.keep(peer, message)
        self._reach.answer(peer, Kept(message.number, None))

    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Note whether a peer keeps our filters."""
        self._backups.handle_kept(peer, message, now)
        self.name_keepers(now)

    def handle_stand_in(self, peer: PeerId, message: StandIn, now: float) -> None:
        """Tell a peer which routes of a node that is gone want an event."""
        for answer in self._copies.answers(message):
            self._reach.answer(peer, answer)

    def handle_keepers(self, peer: PeerId, message: Keepers, now: float) -> None:
        """Note who keeps the filters of a route."""
        self._book.learn(peer, message.backups, self._reach.contact(peer))

    def handle_log(self, peer: PeerId, message: Log, now: float) -> None:
        """Track an event for its rendezvous."""
        passing = check(message.unit, message.card, self._context, self._config, now)
        check_asked(message.attribute, passing.attributes, message.hops)
        self.trackers.add_log(peer, (passing.id, message.attribute), passing, message.hops, now)

    def handle_logged(self, peer: PeerId, message: Logged, now: float) -> None:
        """Note how far events are that are tracked here, and send those who came back what is finished."""
        for way, passing, hops in self.trackers.handle_logged(peer, message):
            self._replays.replay_tracked(WentBy(now, way, passing, hops, peer), now)

    def name_keepers(self, now: float) -> None:
        """Tell those who send us what we asked for who keeps our filters, if that is others now."""
        for peer in self._backups.take_untold(now):
            self._reach.answer(peer, Keepers(self._backups.contacts(now)))

    def tidy(self, now: float) -> None:
        """A period is over: what was not told again for long is forgotten."""
        self._copies.turn()
        self.trackers.tidy(now)
