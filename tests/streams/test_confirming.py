"""The receiver's word that something arrived, if a subscription allows it."""

from __future__ import annotations

from tests.delivery.voices import TOPIC, Voice, take
from tests.streams.stage import NOW, context_of

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Tick
from linnet.delivery.messages import ChainPlace
from linnet.delivery.receipts import sign_receipt
from linnet.streams.confirming import Confirming

S1, S2 = PeerId(b"1" * 32), PeerId(b"2" * 32)
CONTACTS = (Contact(S1, ("tls://s:1",)), Contact(S2, ("tls://s:2",)))
TICK = Tick("confirming", "receipt", TOPIC)
PURPOSE = f"confirming {TOPIC.hex()[:16]}"


def test_it_waits_for_more_to_be_said_then_tells_a_storage_node_that_is_linked() -> None:
    context = context_of()
    confirming = Confirming(TOPIC, context)
    confirming.storage(CONTACTS)
    context.links[S2] = None
    voice = Voice()
    chain, empty = voice.chain(), Voice("ben").chain(base=3)
    take(chain, voice.say())
    chains = {chain.key: chain, empty.key: empty}
    assert confirming.handled() == [SetTimer(1.0, TICK)]
    assert confirming.handled() == []
    place = ChainPlace(voice.identity.author, voice.identity.card.device, 0, 0, False)
    receipt = sign_receipt(context.key, TOPIC, False, NOW, (place,))
    assert confirming.fired(chains, NOW) == [Send(S2, receipt)]
    assert confirming.handled() == [SetTimer(1.0, TICK)]


def test_a_link_is_made_for_it_once_and_let_go() -> None:
    context = context_of()
    confirming = Confirming(TOPIC, context)
    confirming.storage(CONTACTS)
    confirming.handled()
    assert confirming.fired({}, NOW) == [Hold(S1, CONTACTS[0].hints, PURPOSE)]
    confirming.handled()
    assert confirming.fired({}, NOW) == []
    assert confirming.up(S2) == []
    assert confirming.up(S1) == [SetTimer(1.0, TICK)]
    assert confirming.stop() == [CancelTimer(TICK), Release(S1, PURPOSE)]
    assert confirming.stop() == [CancelTimer(TICK)]


def test_without_storage_nobody_is_told() -> None:
    confirming = Confirming(TOPIC, context_of())
    confirming.handled()
    assert confirming.fired({}, NOW) == []
