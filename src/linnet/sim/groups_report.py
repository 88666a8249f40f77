"""What a simulated group is asked to do, and what came of it, in numbers."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace

from linnet.core.errors import ConfigError
from linnet.groups.state import Hardening


class GroupScenario(Struct, frozen=True, kw_only=True):
    """A group whose members come and go, are cut off from each other, and are robbed."""

    members: int = 16
    """At the start; half as many devices are outside, to be added."""
    ops: int = 200
    """Updates, additions, removals and requests to leave."""
    partitions: int = 3
    """Times at which one half cannot hear the other."""
    thefts: int = 5
    messages: float = 1.5
    """Said after each operation, on average."""
    patience: float = 0.6
    """How much of what is under way arrives before the next operation."""
    hardening: Hardening = Hardening()
    seed: int = 1

    def check(self) -> None:
        """`ConfigError` if that is no group."""
        if not 2 <= self.members <= 128:
            raise ConfigError(f"a simulated group has 2 to 128 members, not {self.members}")
        if self.ops < 1 or self.partitions < 0 or self.thefts < 0:
            raise ConfigError("operations, partitions and thefts are counts")
        if not 0 <= self.patience <= 1 or self.messages < 0:
            raise ConfigError("patience is a share, messages are not negative")


class GroupsReport(Struct, frozen=True, eq=False, kw_only=True):
    """The outcome of one run. Two are equal if all but the real time is."""

    members: int
    """At the start."""
    members_at_end: int
    ops: int
    """Updates, additions, removals and requests to leave, healing included."""
    updates: int
    additions: int
    removals: int
    leaves: int
    heals: int
    """Updates that were due before a message could be sent."""
    acks: int
    messages: int
    partitions: int
    thefts: int
    diverged: int
    """Members whose view or keys are not those of the others at the end, or that lost somebody on the way."""
    troubles: tuple[str, ...]
    """The first of such troubles, in words."""
    pairs: int
    """Pairs of a message and one who was a member for its sender, and still is; less what is `late`."""
    unreadable: int
    """Those of them where the message was not opened."""
    late: int
    """Pairs where the sender was removed, and all had heard of that before its message came: nobody keeps
    its keys then."""
    misread: int
    """Messages that one opened who was no member for their sender."""
    safe: int
    """Pairs of a message and a theft (or all thefts together) where the message must not be readable."""
    leaked: int
    """Those of them where it was, and messages that removed members could read, all together."""
    read: int
    """Other pairs, where it may be readable and was: so many did the thief read."""
    unread: int
    """Other pairs, where it was not all the same."""
    healed_after_ops: float
    """Operations after a theft until all messages are safe from it, on average."""
    healed_after_ops_max: int
    unhealed: int
    """Thefts from which the last message of all is not safe."""
    bytes_per_update: float
    """Bodies of an update and of its acknowledgements, on average."""
    weak_starts: int
    """First messages to a member who had no one-time prekey left."""
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything is as it must be."""
        return not (self.diverged or self.unreadable or self.misread or self.leaked or self.unhealed)

    def timeless(self) -> GroupsReport:
        """The same, without what real time it took."""
        return replace(self, wall_seconds=0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupsReport) and asdict(self.timeless()) == asdict(other.timeless())

    __hash__ = None  # type: ignore[assignment]
