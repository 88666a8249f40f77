"""What a peer sends along the way to a rendezvous or back: subscriptions, withdrawals, events and notices.

Each is checked before anything is done with it: that it is about what it goes by, and that it comes from
where such a message can come from.
"""

from __future__ import annotations

from linnet.content.backups import Backups
from linnet.content.config import ContentConfig
from linnet.content.elections import Elections
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Notice, Publish, Replace, Subscribe
from linnet.content.notices import NOTICE, Notices
from linnet.content.parts import base_of, is_part
from linnet.content.passing import check, check_asked
from linnet.content.predicate import Predicate, foreign_predicate
from linnet.content.reach import Reach
from linnet.content.replays import Replays
from linnet.content.routes import RouteBook
from linnet.content.upstream import Upstream
from linnet.content.walks import Walks
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record


class Passage:
    """Takes in what goes up to a rendezvous, or comes down from it, and sends it on.

    Its handlers raise `RemoteError` if something is wrong with a message.
    """

    def __init__(
        self,
        context: Context,
        config: ContentConfig,
        elections: Elections,
        reach: Reach,
        table: FilterTable,
        book: RouteBook,
        backups: Backups,
        upstream: Upstream,
        walks: Walks,
        notices: Notices,
        replays: Replays,
        out: Outbox,
    ) -> None:
        self._out = out
        self._context = context
        self._config = config
        self._elections = elections
        self._reach = reach
        self._table = table
        self._book = book
        self._backups = backups
        self._upstream = upstream
        self._walks = walks
        self._notices = notices
        self._replays = replays

    def handle_subscribe(self, peer: PeerId, message: Subscribe, now: float) -> None:
        """Keep a filter of a peer, and ask the next hop for what it accepts."""
        predicate = foreign_predicate(message.predicate, self._config.attributes)
        self._check_way(peer, message.attribute, predicate, message.hops, upwards=True)
        self._table.check_room(peer, message.attribute, predicate, self._config)
        stands = self._table.add(peer, message.attribute, predicate).stands
        self._book.learn(peer, message.backups, self._reach.contact(peer))
        self._book.set_shortcut(peer, message.attribute, message.shortcut)
        waiters = [(peer, message.number)] if self._config.reliable else []
        hops, moved = message.hops + 1, message.moved
        self._backups.tell_change(message.attribute, peer, (predicate,), False, now)
        self._upstream.tell(message.attribute, stands, hops, waiters, now, moved)
        if moved:
            self._replays.replay(peer, message.attribute, predicate, now)

    def handle_replace(self, peer: PeerId, message: Replace, now: float) -> None:
        """Forget the filters of a peer but these, and tell the next hop what is left."""
        left = tuple(foreign_predicate(text, self._config.attributes) for text in message.predicates)
        if any(message.attribute not in predicate.names for predicate in left):
            raise RemoteError(Reason.MALFORMED, "a predicate without the attribute that it goes by")
        if not self._table.replace(peer, message.attribute, left) and left:
            self._table.replace(peer, message.attribute, ())
            raise RemoteError(Reason.STALE, "it had asked for nothing")
        self._backups.tell_change(message.attribute, peer, left, True, now)
        self._upstream.withdraw(message.attribute)

    def handle_publish(self, peer: PeerId, message: Publish, now: float) -> None:
        """Bring an event further on its way to a rendezvous."""
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=True)
        way = (passing.id, message.attribute)
        if self._walks.is_known(way):
            self._walks.repeat_answer(peer, way)
            return
        self._walks.begin(message.attribute, passing, peer, message.hops, now)

    def handle_notice(self, peer: PeerId, message: Notice, now: float) -> None:
        """Bring an event to those below this node who want it."""
        passing = check(message.unit, message.card, self._context, self._config, now)
        self._check_way(peer, message.attribute, passing.attributes, message.hops, upwards=False)
        base = base_of(message.attribute)
        way = (passing.id, base)
        if self._notices.is_known(way):
            self._notices.repeat_answer(peer, way, message.attribute)
            return
        hops, patience = message.hops, message.patience / 1000
        self._out.record(Record(Kind.RECEIVED, event=passing.id, peer=peer, hops=hops, note=NOTICE))
        said, own_only = message.attribute, is_part(message.attribute) and base in self._elections.held
        self._notices.send_down(
            base, passing, hops, peer, None, now, patience, said_as=said, own_only=own_only
        )

    def _check_way(self, peer: PeerId, attribute: str, asked: Predicate, hops: int, upwards: bool) -> None:
        """Walks go to nodes closer to the rendezvous, and notices come from them: none goes in circles."""
        check_asked(attribute, asked, hops)
        if self._elections.is_closer(peer, attribute) is upwards:
            raise RemoteError(Reason.NOT_RESPONSIBLE, "not on the way to this rendezvous")
