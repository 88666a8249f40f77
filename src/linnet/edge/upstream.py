"""What a node on the edge knows of one of its proxies."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.chain import ChainKey


class Upstream:
    """One of our proxies, used or not."""

    __slots__ = (
        "agreed",
        "answers",
        "asked",
        "contact",
        "failure",
        "is_missed",
        "kept",
        "most",
        "pending",
        "seen",
        "told",
        "unsaid",
        "up",
        "used",
    )

    def __init__(self, contact: Contact) -> None:
        self.contact = contact
        self.used = False
        self.up = False
        self.is_missed = False
        """Whether its link did not come, or was gone for so long that others stand in."""
        self.failure: Reason | None = None
        self.answers: dict[TopicId, Reason | None] = {}
        """What it said of each stream over this link: None if it serves it."""
        self.pending: dict[int, tuple[TopicId, ...]] = {}
        """Questions that are not answered."""
        self.asked: dict[TopicId, None] = {}
        """Streams that it heard of since the start and that it may still keep for us."""
        self.told: dict[TopicId, dict[ChainKey, int]] = {}
        """What it knows to have arrived here."""
        self.seen: dict[TopicId, bytes] = {}
        """How far we were when it was last told."""
        self.agreed: dict[TopicId, bytes] = {}
        """How far we were when it last said that it knows the same."""
        self.unsaid: dict[str, None] = {}
        """Streams that we want no longer, which it has not heard yet."""
        self.kept = self.most = 0

    @property
    def peer(self) -> PeerId:
        """Its key."""
        return self.contact.peer

    @property
    def works(self) -> bool:
        """Whether it is used and can be told something now."""
        return self.up and self.used

    @property
    def is_expected(self) -> bool:
        """Whether streams are asked of it: it is used, and there or soon will be."""
        return self.used and (self.up or not self.is_missed)

    @property
    def served(self) -> tuple[TopicId, ...]:
        """Streams that it serves us."""
        return tuple(topic for topic, refusal in self.answers.items() if refusal is None)

    @property
    def refused(self) -> tuple[TopicId, ...]:
        """Streams that it does not serve us."""
        return tuple(topic for topic, refusal in self.answers.items() if refusal is not None)

    def serves(self, topic: TopicId) -> bool:
        """Whether it said that it serves a stream."""
        return self.answers.get(topic, Reason.UNKNOWN) is None

    def is_asked(self, topic: TopicId) -> bool:
        """Whether it answered for a stream over this link, or is about to."""
        return topic in self.answers or any(topic in topics for topics in self.pending.values())

    def part(self) -> tuple[TopicId, ...]:
        """Its link is gone, or it is used no longer: returns what it served until now."""
        served = self.served
        self.answers, self.pending, self.seen, self.agreed = {}, {}, {}, {}
        return served

    def forget(self, topic: TopicId) -> None:
        """A stream is asked of it no longer."""
        self.asked.pop(topic, None)
        self.answers.pop(topic, None)
        for known in (self.told, self.seen, self.agreed):
            known.pop(topic, None)
