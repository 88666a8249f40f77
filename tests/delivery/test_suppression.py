"""A unit that waits is not sent to those who send it meanwhile."""

from __future__ import annotations

from tests.delivery.voices import Voice, asked

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.delivery.flood import Flood, SpreadDue, Suppression
from linnet.machine.outbox import Outbox

A, B, C = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
NOW = 1_700_000_000.0


def flood_of(voice: Voice, *peers: PeerId) -> Flood:
    flood = Flood(voice.topic)
    for peer in peers:
        flood.up(peer)
    return flood


def receivers(effects: object) -> list[PeerId]:
    assert isinstance(effects, list)
    return [effect.peer for effect in effects if isinstance(effect, Send)]


def test_without_a_delay_it_goes_on_at_once() -> None:
    out, voice = Outbox(), Voice("ann")
    suppression = Suppression(voice.topic, flood_of(voice, A, B, C), 0.0, out)
    assert receivers(asked(out, suppression.spread, voice.say(), voice.identity.card, (A,), 2, 0, NOW)) == [
        B,
        C,
    ]
    assert not suppression


def test_who_sends_it_meanwhile_is_skipped() -> None:
    out, voice = Outbox(), Voice("ann")
    unit = voice.say()
    suppression = Suppression(voice.topic, flood_of(voice, A, B, C), 0.1, out)
    timer = SpreadDue(voice.topic, unit.head)
    assert asked(out, suppression.spread, unit, voice.identity.card, (A,), 2, 0, NOW) == [
        SetTimer(0.1, timer)
    ]
    suppression.note_source(unit.unit, B)
    suppression.note_source(voice.say().unit, C)
    sent = asked(out, suppression.spread_waiting, unit.head, NOW + 0.1)
    assert receivers(sent) == [C]
    message = next(effect.message for effect in sent if isinstance(effect, Send))
    assert (message.hops, message.age_us) == (2, 100_000)
    assert asked(out, suppression.spread_waiting, unit.head, NOW + 0.2) == []
