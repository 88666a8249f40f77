"""Advertisements of groups, on boards at the nodes closest to their attributes: signed, expiring, bounded."""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_keys import Directory, Locate, Located, attribute_key, distance
from linnet.content.config import FastConfig
from linnet.content.fast.group_requests import Advertising, FastStation
from linnet.content.fast.messages import POSTINGS, Post, Posted, Posting
from linnet.content.fast.publisher_groups import Group
from linnet.content.fast.signed_records import group_id, make_posting
from linnet.content.predicate import Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.trace.records import Kind, Record


class _Advert(Struct, eq=False):
    """The advertisement of one group."""

    predicate: Predicate
    posting: Posting
    stands: dict[tuple[str, PeerId], tuple[Contact, int]] = {}
    """Attributes and nodes on whose boards it stands, with the second at which it expires there."""
    spare: dict[str, list[Contact]] = {}


class Advertisements:
    """The advertisements of this node's groups."""

    def __init__(self, station: FastStation, boards: Boards) -> None:
        self._out = station.out
        self._context = station.context
        self._config = station.config
        self._requests = station.requests
        self._boards = boards
        self._listens = station.listens
        self._adverts: dict[TopicId, _Advert] = {}
        self._located: dict[NodeId, dict[TopicId, str]] = {}
        self._open: dict[Advertising, None] = {}
        self._issued = 0

    @property
    def is_settled(self) -> bool:
        """Whether all boards have answered."""
        return not self._open and not self._located

    def advertise(self, group: Group, now: float) -> None:
        """Put a group on boards, or keep it there for longer."""
        posting = self._posting(group.predicate.text, True, now)
        known = self._adverts.get(group.id)
        if known is None:
            known = self._adverts[group.id] = _Advert(group.predicate, posting)
        known.posting = posting
        known.stands = {place: each for place, each in known.stands.items() if each[1] > now}
        for attribute in group.predicate.names:
            key = attribute_key(attribute)
            waiting = self._located.setdefault(key, {})
            if not waiting:
                self._out.notify(Locate(key))
            waiting[group.id] = attribute

    def _posting(self, predicate: str, opened: bool, now: float) -> Posting:
        # Pushed on where the clock stood still: the later of two counts.
        self._issued = max(int(now * 1000), self._issued + 1)
        expires = int(now + 3 * self._config.refresh)
        return make_posting(self._context, self._listens, predicate, opened, self._issued, expires)

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Put advertisements on the boards of the closest nodes that a lookup found."""
        for group, attribute in self._located.pop(found.key, {}).items():
            advert = self._adverts.get(group)
            if advert is None:
                continue
            nodes = closest(self._context.peer, found)
            advert.spare[attribute] = nodes[self._config.boards :]
            for contact in nodes[: self._config.boards]:
                self._post(group, advert, attribute, contact)

    def _post(self, group: TopicId, advert: _Advert, attribute: str, contact: Contact) -> None:
        if contact.peer == self._context.peer:
            try:
                self._boards.put(attribute, advert.posting, advert.predicate)
            except RemoteError as error:
                self._out.record(Record(Kind.DROPPED, topic=group, reason=error.reason, note="our own board"))
                return
            advert.stands[attribute, contact.peer] = (contact, advert.posting.expires)
            return
        task = Advertising(group, attribute, contact.peer)
        if task in self._open:
            return
        self._open[task] = None
        # Noted with its hints before the answer comes, so that it can be withdrawn there in any case.
        advert.stands[attribute, contact.peer] = (contact, advert.posting.expires)
        message = Post(self._requests.next_number(), attribute, advert.posting)
        self._requests.ask_peer(contact, message, task, hasty=True)

    def handle_answer(self, task: Advertising, answer: Posted) -> None:
        """Note that an advertisement is on a board, or try another node."""
        if answer.reason is None:
            self._open.pop(task, None)
            return
        self.handle_failure(task, answer.reason)

    def handle_failure(self, task: Advertising, reason: Reason) -> None:
        """Try the next closest node, since one did not take an advertisement."""
        self._open.pop(task, None)
        self._out.record(Record(Kind.REJECTED, topic=task.group, peer=task.at, reason=reason, note="Post"))
        advert = self._adverts.get(task.group)
        if advert is None:
            return
        advert.stands.pop((task.attribute, task.at), None)
        spare = advert.spare.get(task.attribute)
        if not spare or len(self._standing(advert, task.attribute)) >= self._config.boards:
            return
        self._post(task.group, advert, task.attribute, spare.pop(0))

    def _standing(self, advert: _Advert, attribute: str) -> list[PeerId]:
        return [peer for name, peer in advert.stands if name == attribute]

    def withdraw(self, group: Group, now: float) -> None:
        """Tell the boards where a group stands that it is closed."""
        advert = self._adverts.pop(group.id, None)
        if advert is None:
            return
        advert.posting = self._posting(group.predicate.text, False, now)
        for (attribute, _), (contact, _) in list(advert.stands.items()):
            self._open.pop(Advertising(group.id, attribute, contact.peer), None)
            self._post(group.id, advert, attribute, contact)

    def is_alone(self, group: TopicId) -> bool:
        """Return whether a group is on no board but this node's own."""
        advert = self._adverts.get(group)
        return advert is not None and all(peer == self._context.peer for _, peer in advert.stands)

    def boards(self, group: TopicId) -> int:
        """Return the number of boards on which a group stands, by their own answers."""
        advert = self._adverts.get(group)
        if advert is None:
            return 0
        return sum(Advertising(group, *place) not in self._open for place in advert.stands)


class Boards:
    """The boards of this node: advertisements that it keeps for others, by attribute."""

    def __init__(self, config: FastConfig) -> None:
        self._config = config
        self._boards: dict[str, dict[TopicId, tuple[Posting, Predicate]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, attribute: str, posting: Posting, predicate: Predicate) -> None:
        """Keep a checked advertisement in place of an earlier one; `RemoteError` if there is no room.

        An advertisement that a group is closed is kept as well, so that an earlier one does not come back.
        """
        if attribute not in predicate.names:
            raise RemoteError(Reason.MALFORMED, "without the attribute of the board")
        group = group_id(posting.publisher.peer, posting.predicate)
        board = self._boards.get(attribute, {})
        known = board.get(group)
        if known is not None and known[0].issued > posting.issued:
            raise RemoteError(Reason.STALE, "a later one is here")
        if known is None:
            self._check_room(board, posting.publisher.peer)
            self._count += 1
        self._boards.setdefault(attribute, board)[group] = (posting, predicate)

    def _check_room(self, board: dict[TopicId, tuple[Posting, Predicate]], publisher: PeerId) -> None:
        config = self._config
        if self._count >= config.postings or len(board) >= config.board:
            raise RemoteError(Reason.TOO_MANY, "the board is full")
        of_one = sum(posting.publisher.peer == publisher for posting, _ in board.values())
        if of_one >= config.of_one:
            raise RemoteError(Reason.TOO_MANY, f"more than {config.of_one} of one publisher")

    def page(
        self, attribute: str, wanted: Predicate, after: bytes, now: float
    ) -> tuple[tuple[Posting, ...], bool]:
        """Return a page of open groups, after an id, that carry a whole predicate, and whether more
        follow."""
        board = self._boards.get(attribute, {})
        found: list[Posting] = []
        for group in sorted(board):
            posting, predicate = board[group]
            if group <= after or not posting.open or posting.expires <= now:
                continue
            if wanted.served_by(predicate):
                if len(found) == POSTINGS:
                    return tuple(found), True
                found.append(posting)
        return tuple(found), False

    def expire(self, now: float) -> int:
        """Drop expired advertisements, and return how many."""
        before = self._count
        for attribute, board in list(self._boards.items()):
            for group in [group for group, (posting, _) in board.items() if posting.expires <= now]:
                del board[group]
                self._count -= 1
            if not board:
                del self._boards[attribute]
        return before - self._count


_NEAR = 8
"""A node keeps advertisements if it knows of fewer nodes that are closer to the attribute."""


def closest(ours: PeerId, found: Located) -> list[Contact]:
    """Return all nodes that a lookup found, and this node, the closest to the key first."""
    known = [*found.contacts, Contact(ours)]
    return sorted(known, key=lambda contact: distance(contact.peer, found.key))


def is_near(ours: PeerId, attribute: str, directory: Directory) -> bool:
    """Return whether this node, as far as it knows, is one of those closest to an attribute."""
    key = attribute_key(attribute)
    return _closer(ours, key, directory.closest(key, _NEAR)) < _NEAR


def _closer(ours: PeerId, key: NodeId, known: list[Contact]) -> int:
    own = distance(ours, key)
    return sum(distance(contact.peer, key) < own for contact in known)
