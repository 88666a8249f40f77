"""What peers say about one place: each message to the part that it is for."""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.places.effects import PlaceEffect
from linnet.places.messages import (
    AskRoll,
    AskState,
    AskTerms,
    Away,
    Decision,
    DeedIs,
    Enter,
    Heard,
    Kept,
    PlaceMessage,
    Receipts,
    Replay,
    Replayed,
    RollIs,
    StateIs,
    Talk,
    TermsAre,
    Unheard,
    Yield,
    Yielded,
)
from linnet.places.place import Place
from linnet.trace.records import Kind, Record


def inside(where: Place, peer: PeerId, message: PlaceMessage, now: float) -> list[PlaceEffect]:
    """From somebody who is connected, or wants to be heard by the voice."""
    if isinstance(message, AskTerms | TermsAre | Yield | Yielded | Talk | Heard | Unheard):
        return _with_the_voice(where, peer, message, now)
    match message:
        case Replay():
            return where.on_replay(peer, message, now)
        case Replayed():
            return where.on_replayed(peer, message, now)
        case AskState():
            return where.on_ask_state(peer, message)
        case StateIs():
            return where.on_state(peer, message, now)
        case AskRoll():
            return where.on_ask_roll(peer, message)
        case RollIs():
            return where.on_roll(peer, message, now)
        case Receipts():
            return [*where.receipts.came(peer, message, now)]
        case Kept():
            return [*where.keepers.answered(peer, message, now)]
        case _:
            note = f"{type(message).__name__}: not taken part in yet"
            return [Record(Kind.DROPPED, where.parts.id, peer=peer, reason=Reason.UNSUPPORTED, note=note)]


def at_the_door(
    where: Place, peer: PeerId, message: Enter | Decision | Away | DeedIs, now: float
) -> list[PlaceEffect]:
    """From somebody who comes or goes, or tells whose the place is."""
    match message:
        case Enter():
            return where.on_enter(peer, message, now)
        case Decision():
            return where.on_decision(peer, message, now)
        case Away():
            return where.on_away(peer, message, now)
        case DeedIs():
            return where.on_deed(peer, message, now)


def _with_the_voice(
    where: Place,
    peer: PeerId,
    message: AskTerms | TermsAre | Yield | Yielded | Talk | Heard | Unheard,
    now: float,
) -> list[PlaceEffect]:
    match message:
        case Talk():
            return where.on_talk(peer, message, now)
        case Heard():
            return [*where.talks.on_heard(peer, message)]
        case Unheard():
            return [*where.talks.on_unheard(peer, message)]
        case AskTerms():
            return where.on_ask_terms(peer, message, now)
        case TermsAre():
            return where.on_terms(peer, message, now)
        case Yield():
            return where.voicing.on_yield(peer, message, now)
        case Yielded():
            return where.voicing.on_yielded(peer, message, now)
