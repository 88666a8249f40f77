"""What a simulated room is like, in numbers."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace


class RoomsReport(Struct, frozen=True, eq=False, kw_only=True):
    """The outcome of one room scenario. Two are equal if all but the real time is."""

    peers: int
    relays: int
    events: int
    """All events of the room, its set-up included."""
    messages: int
    """Messages that were said."""
    declined: int
    """What nodes declined to say because they knew that they may not, or were away."""
    banned: int
    demoted: int
    offline_share: float
    """Share of the time that peers were away, on average."""
    pairs: int
    """Pairs of an event and a member that count: see `delivered_share`."""
    delivered_share: float
    """Share of pairs delivered by the end. A pair counts if its event is allowed at its own control heads,
    the member is in the room there and at the end, and nothing that the author did not know takes away the
    right to the event."""
    undelivered: tuple[str, ...]
    """The first of those that are missing, in words."""
    first_return_share: float
    """Of pairs whose member was away when the event was said: share delivered in the first time back."""
    return_pairs: int
    """How many such pairs there are."""
    unauthorised_delivered: int
    """Deliveries of events that are not allowed, or that the node could know to be so no more."""
    endangered: int
    """Events that somebody's removal or demotion met on the way: each node may take them or not."""
    soft_failed: int
    """Events that at least one node did not show because of that."""
    distinct_states: int
    """Different states that members have at the end."""
    states_wrong: int
    """Members whose state is not the one that follows from all events."""
    causal_violations: int
    """Events that were shown before something that they depend on."""
    duplicate_deliveries: int
    """Events that an application was handed again, without a restart in between."""
    ledger_lines: int
    ledger_wrong: int
    """Lines that claim what did not happen, or not by then."""
    ledger_wrong_lines: tuple[str, ...]
    """The first of them, in words."""
    ledger_pending: int
    """Lines of pairs that were delivered and of which the sender has not learned it."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything that has to hold does."""
        return (
            self.delivered_share == 1.0
            and self.distinct_states == 1
            and not any(
                (
                    self.unauthorised_delivered,
                    self.states_wrong,
                    self.causal_violations,
                    self.duplicate_deliveries,
                    self.ledger_wrong,
                )
            )
        )

    def timeless(self) -> RoomsReport:
        """The report without what depends on the machine that ran it."""
        return replace(self, wall_seconds=0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RoomsReport):
            return NotImplemented
        return asdict(self.timeless()) == asdict(other.timeless())

    def __hash__(self) -> int:
        return hash(self.trace_sha256)
