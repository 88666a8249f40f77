"""The receipts that a relay keeps: the latest of each member's device, for those who were away."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipts import Receipts

RECEIPTS_PER_PAGE = 64
"""A receipt may have two kilobytes, and a page has to fit a frame beside its events."""


class KeptReceipts:
    """Receipts of one room, numbered in the order in which they came, so that each is told once on a link."""

    def __init__(self, room: TopicId, context: Context, config: RoomsConfig, most: int) -> None:
        self._receipts = Receipts(room, context, config, Outbox())
        self._most = most
        self._numbers: dict[PeerId, int] = {}
        self.next = 0
        """The number that the next one gets."""
        for receipt in self._receipts.all():
            self._number(receipt.card.device_key)

    def learn(self, receipt: RoomReceipt) -> bool:
        """Keep a receipt of a member; whether it is news. `RemoteError` if it is false, or one too many."""
        device = receipt.card.device_key
        if device not in self._numbers and len(self._numbers) >= self._most:
            raise RemoteError(Reason.TOO_MANY, f"receipts of {self._most} devices are kept already")
        if not self._receipts.learn(receipt):
            return False
        self._number(device)
        return True

    def page(self, start: int) -> tuple[tuple[RoomReceipt, ...], int]:
        """Those from a number on, as many as a page holds, and the number to go on from."""
        latest = {receipt.card.device_key: receipt for receipt in self._receipts.all()}
        due = [(number, device) for device, number in self._numbers.items() if number >= start]
        page = due[:RECEIPTS_PER_PAGE]
        after = self.next if len(page) == len(due) else page[-1][0] + 1
        return tuple(latest[device] for _, device in page), after

    def of(self, person: AuthorId) -> int:
        """Devices of a person whose receipt is kept."""
        return sum(receipt.card.person == person for receipt in self._receipts.all())

    def retain(self, people: frozenset[AuthorId]) -> None:
        """Only these are members now: forget the receipts of all others."""
        for receipt in self._receipts.all():
            if receipt.card.person not in people:
                self._receipts.forget(receipt.card.person)
                self._numbers.pop(receipt.card.device_key, None)

    def _number(self, device: PeerId) -> None:
        self._numbers.pop(device, None)
        self._numbers[device] = self.next
        self.next += 1
