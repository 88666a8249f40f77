"""What people are called where people read it.

Everyone may call their device as they like, so two with the same label are told apart by their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from linnet.cli.output import plain

if TYPE_CHECKING:
    from linnet.node.room_types import MemberView

_SHOWN_LETTERS = 9


class Names:
    """The names of a room's people, by person id."""

    def __init__(self, members: Iterable[MemberView] = (), own: str | None = None) -> None:
        """`own` is who reads this."""
        self._own = own
        self._labels: dict[str, str] = {}
        self.update(members)

    def update(self, members: Iterable[MemberView]) -> None:
        """Learn the names of these."""
        self._labels |= {member.person: plain(member.label) for member in members if member.label}
        self._counts = Counter(self._labels.values())

    def learn(self, person: str, label: str | None) -> None:
        """Somebody says something, with this on their card."""
        if label and self._labels.get(person) != plain(label):
            self._labels[person] = plain(label)
            self._counts = Counter(self._labels.values())

    def of(self, person: str) -> str:
        """What to call a person."""
        if person == self._own:
            return "you"
        label = self._labels.get(person, "")
        letters = person[:_SHOWN_LETTERS] + "…"
        if not label:
            return letters
        # Nobody is called you, or as somebody else.
        return f"{label} ({letters})" if self._counts[label] > 1 or label == "you" else label
