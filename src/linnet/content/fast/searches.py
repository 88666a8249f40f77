"""Searches for groups: all nodes that should have the board of one attribute are asked, and not believed.

A group that carries what is wanted has all of its attributes, so it stands on the boards of any one of them.
Several nodes have that board: one that is gone, hides something or disagrees who is closest does no harm.
"""

from __future__ import annotations

from linnet.content.attribute_keys import Locate, Located, attribute_key, nearest_name
from linnet.content.fast.boards import Boards
from linnet.content.fast.commands import Listing
from linnet.content.fast.config import FastConfig
from linnet.content.fast.messages import Browse, Browsed, Posting
from linnet.content.fast.places import closest
from linnet.content.fast.signed import check_posting, group_id
from linnet.content.fast.tasks import Browsing, GroupRequests
from linnet.content.predicate import Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.overlay.kademlia.ids import NodeId
from linnet.trace.records import Kind, Record

_PAGES = 128
"""Pages that are read of one board: four thousand groups."""


class _Search:
    """One search."""

    __slots__ = ("attribute", "found", "issued", "open", "pages", "predicate", "spare", "unanswered")

    def __init__(self, predicate: Predicate, attribute: str) -> None:
        self.predicate = predicate
        self.attribute = attribute
        self.found: dict[TopicId, Listing] = {}
        self.issued: dict[TopicId, int] = {}
        self.open: dict[PeerId, Contact] = {}
        self.spare: list[Contact] = []
        self.pages: dict[PeerId, int] = {}
        self.unanswered = 0


class Searches:
    """What this node looks for. What has ended is in `ended`, until somebody takes it."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        attributes: int,
        requests: GroupRequests,
        boards: Boards,
        out: Outbox,
    ) -> None:
        self._out = out
        self._context = context
        self._config = config
        self._attributes = attributes
        self._requests = requests
        self._boards = boards
        self._searches: dict[int, _Search] = {}
        self._located: dict[NodeId, list[int]] = {}
        self._next = 0
        self.ended: list[tuple[int, tuple[Listing, ...], int]] = []
        """Searches, the groups that they found, and how many boards did not answer."""

    def __len__(self) -> int:
        return len(self._searches)

    def begin(self, predicate: Predicate) -> int:
        """Look for groups that carry all of this; the number of the search."""
        self._next += 1
        attribute = nearest_name(self._context.peer, predicate.names)
        self._searches[self._next] = _Search(predicate, attribute)
        key = attribute_key(attribute)
        waiting = self._located.setdefault(key, [])
        waiting.append(self._next)
        if len(waiting) == 1:
            self._out.notify(Locate(key))
        return self._next

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Ask the closest nodes that a lookup found."""
        for number in self._located.pop(found.key, ()):
            search = self._searches[number]
            nodes = closest(self._context.peer, found)
            search.spare = nodes[self._config.boards :]
            for contact in nodes[: self._config.boards]:
                self._browse(number, search, contact, b"", now)
            self._end_if_all(number, search)

    def _browse(self, number: int, search: _Search, contact: Contact, after: bytes, now: float) -> None:
        if contact.peer == self._context.peer:
            more = True
            while more:
                postings, more = self._boards.page(search.attribute, search.predicate, after, now)
                for posting in postings:
                    self._learn(search, posting)
                    after = group_id(posting.publisher.peer, posting.predicate)
            return
        search.open[contact.peer] = contact
        asked = self._requests.next_number()
        message = Browse(asked, search.attribute, search.predicate.text, after)
        self._requests.ask(asked, contact, message, Browsing(number, contact.peer), hasty=True)

    def handle_answer(self, task: Browsing, answer: Browsed, now: float) -> None:
        """Read what a board says is on it, or a page of that."""
        search = self._searches.get(task.search)
        if search is None:
            return
        contact = search.open.pop(task.at)
        if answer.reason is not None:
            self.handle_failure(task, answer.reason, now)
            return
        last = b""
        for posting in answer.postings:
            try:
                self._check(search, posting, now)
            except RemoteError as error:
                note = f"an advertisement: {error.detail}"
                self._out.record(Record(Kind.REJECTED, peer=task.at, reason=error.reason, note=note))
            last = max(last, group_id(posting.publisher.peer, posting.predicate))
        pages = search.pages[task.at] = search.pages.get(task.at, 0) + 1
        if answer.more and answer.postings and pages < _PAGES:
            self._browse(task.search, search, contact, last, now)
        self._end_if_all(task.search, search)

    def _check(self, search: _Search, posting: Posting, now: float) -> None:
        group = group_id(posting.publisher.peer, posting.predicate)
        if search.issued.get(group, -1) >= posting.issued:
            return
        longest = 3 * self._config.refresh
        predicate = check_posting(posting, self._context, self._attributes, longest, now)
        if not search.predicate.served_by(predicate):
            raise RemoteError(Reason.MALFORMED, "not what was asked for")
        self._learn(search, posting)

    def _learn(self, search: _Search, posting: Posting) -> None:
        group = group_id(posting.publisher.peer, posting.predicate)
        if search.issued.get(group, -1) >= posting.issued:
            return
        search.issued[group] = posting.issued
        if posting.open:
            author = posting.card.person
            search.found[group] = Listing(group, posting.publisher, posting.predicate, author)
        else:
            search.found.pop(group, None)

    def handle_failure(self, task: Browsing, reason: Reason, now: float) -> None:
        """Ask another node that may have the board of one that does not answer."""
        search = self._searches.get(task.search)
        if search is None:
            return
        search.open.pop(task.at, None)
        search.unanswered += 1
        if search.spare and search.unanswered <= self._config.boards:
            self._browse(task.search, search, search.spare.pop(0), b"", now)
        self._end_if_all(task.search, search)

    def _end_if_all(self, number: int, search: _Search) -> None:
        if not search.open:
            del self._searches[number]
            self.ended.append((number, tuple(search.found.values()), search.unanswered))
