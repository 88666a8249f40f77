"""Boards: advertisements of groups at the nodes closest to their attributes. Signed, expiring, bounded."""

from __future__ import annotations

from linnet.content.fast.config import FastConfig
from linnet.content.fast.messages import POSTINGS, Posting
from linnet.content.fast.signed import group_id
from linnet.content.predicate import Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason


class Boards:
    """What this node keeps for others, by attribute."""

    def __init__(self, config: FastConfig) -> None:
        self._config = config
        self._boards: dict[str, dict[TopicId, tuple[Posting, Predicate]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, attribute: str, posting: Posting, predicate: Predicate) -> None:
        """Keep a checked advertisement instead of an earlier one; `RemoteError` if there is no room.

        One that says that a group is closed is kept as well, so that an earlier one does not come back.
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
        """Advertisements of groups that carry what is wanted, after a group's id; whether there are more."""
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
        """Forget what is over; how many."""
        before = self._count
        for attribute, board in list(self._boards.items()):
            for group in [group for group, (posting, _) in board.items() if posting.expires <= now]:
                del board[group]
                self._count -= 1
            if not board:
                del self._boards[attribute]
        return before - self._count
