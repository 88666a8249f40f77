"""Who is the rendezvous: nobody is before a lookup says so."""

from __future__ import annotations

from tests.content.directories import Known

from linnet.content.attribute_keys import Locate, Located, attribute_key, distance
from linnet.content.config import ContentConfig
from linnet.content.rendezvous import OURS, PENDING, Elections, Suspects, Verdict
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice, Outbox

KEY = attribute_key("stock")
NEAR, OURSELVES, FAR = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 4)), key=lambda peer: distance(peer, KEY)
)


class Chosen(Elections):
    """Elections with an outbox of their own."""

    def __init__(self, config: ContentConfig, *known: PeerId) -> None:
        self.out = Outbox()
        super().__init__(OURSELVES, config, Known(*known), self.out)

    def decision(self, now: float) -> tuple[Contact | Verdict, list[Notice]]:
        """What is decided, and what is looked up for it."""
        return self.decide("stock", now), self.out.take_notices()


def elections(*known: PeerId, confirm: bool = True) -> Chosen:
    return Chosen(ContentConfig(confirm=confirm), *known)


def test_a_walk_goes_to_who_is_closer() -> None:
    assert elections(NEAR, FAR).decision(0.0) == (Contact(NEAR), [])


def test_who_knows_of_nobody_closer_looks_first_and_only_once() -> None:
    chosen = elections(FAR)
    assert chosen.decision(0.0) == (PENDING, [Locate(KEY)])
    assert chosen.decision(0.0) == (PENDING, [])
    assert chosen.held == []
    assert chosen.handle_nodes_found(Located(KEY, (Contact(FAR),)), 1.0) == "stock"
    assert chosen.decision(1.0) == (OURS, [])
    assert chosen.held == ["stock"]


def test_a_lookup_that_finds_somebody_closer_decides() -> None:
    chosen = elections(FAR)
    chosen.decision(0.0)
    chosen.handle_nodes_found(Located(KEY, (Contact(NEAR, ("tls://a:1",)), Contact(FAR))), 1.0)
    assert chosen.decision(1.0) == (Contact(NEAR, ("tls://a:1",)), [])


def test_what_was_confirmed_is_looked_up_again_after_a_while() -> None:
    chosen = elections()
    chosen.decision(0.0)
    chosen.handle_nodes_found(Located(KEY, ()), 0.0)
    assert chosen.decision(299.0) == (OURS, [])
    assert chosen.decision(300.0) == (PENDING, [Locate(KEY)])


def test_who_did_not_answer_is_left_out_for_a_while() -> None:
    chosen = elections(NEAR, confirm=False)
    chosen.suspects.avoid(NEAR, 0.0)
    assert chosen.decision(1.0) == (OURS, [])
    assert chosen.decision(61.0) == (Contact(NEAR), [])
    assert chosen.held == []
    chosen.suspects.avoid(NEAR, 61.0)
    chosen.suspects.forgive(NEAR)
    chosen.tidy(61.0)
    assert chosen.decision(61.0) == (Contact(NEAR), [])


def test_who_cut_us_off_is_left_out_though_a_link_comes_up_and_a_lookup_names_it() -> None:
    chosen = elections(NEAR, confirm=False)
    chosen.suspects.handle_link_down(NEAR, Reason.NOT_NEEDED, 0.0)
    assert chosen.decision(0.0) == (Contact(NEAR), [])
    chosen.suspects.handle_link_down(NEAR, Reason.FLOODING, 0.0)
    chosen.suspects.forgive(NEAR)
    assert chosen.decision(1.0) == (OURS, [])
    chosen.tidy(61.0)
    assert chosen.decision(61.0) == (Contact(NEAR), [])


def test_who_answers_a_lookup_is_not_left_out_though_a_link_to_it_broke() -> None:
    chosen = elections(NEAR)
    chosen.suspects.avoid(NEAR, 0.0)
    assert chosen.decision(1.0) == (PENDING, [Locate(KEY)])
    chosen.handle_nodes_found(Located(KEY, (Contact(NEAR),)), 1.0)
    assert chosen.decision(1.0) == (Contact(NEAR), [])
    assert chosen.held == []


def test_a_lookup_that_nobody_asked_for_decides_nothing() -> None:
    assert elections().handle_nodes_found(Located(KEY, ()), 0.0) is None


def test_closer_is_closer_to_the_attribute() -> None:
    chosen = elections()
    assert chosen.is_closer(NEAR, "stock")
    assert not chosen.is_closer(FAR, "stock")
    assert not chosen.is_closer(OURSELVES, "stock")


def test_who_names_a_rendezvous_that_cannot_be_reached_is_not_heeded_again_and_others_are() -> None:
    """Anybody can make up an id that is closer: a rendezvous is led astray once by each, and comes back."""
    chosen = elections(FAR)

    def becomes_rendezvous() -> None:
        chosen.decision(0.0)
        chosen.handle_nodes_found(Located(KEY, (Contact(FAR),)), 0.0)
        assert chosen.decision(0.0) == (OURS, [])

    becomes_rendezvous()
    liar, honest = PeerId(b"l" * 32), PeerId(b"h" * 32)
    assert chosen.yield_to("stock", Contact(NEAR), 0.0, liar)
    assert chosen.decision(0.0) == (Contact(NEAR), [])
    chosen.suspects.avoid(NEAR, 0.0)
    becomes_rendezvous()
    chosen.suspects.forgive(NEAR)
    assert not chosen.yield_to("stock", Contact(NEAR), 1.0, liar)
    assert chosen.yield_to("stock", Contact(NEAR), 1.0, honest)


def test_a_false_rendezvous_that_is_farther_changes_nothing() -> None:
    chosen = elections()
    chosen.decision(0.0)
    chosen.handle_nodes_found(Located(KEY, ()), 0.0)
    assert not chosen.yield_to("stock", Contact(FAR), 0.0, FAR)
    assert chosen.held == ["stock"]


def test_who_finds_nobody_though_others_are_known_is_lost_and_who_knows_of_none_is_not() -> None:
    chosen = elections(FAR)

    def looks(*found: PeerId) -> bool:
        chosen.look_up("stock")
        chosen.handle_nodes_found(Located(KEY, tuple(map(Contact, found))), 0.0)
        return chosen.is_lost("stock")

    assert not looks()
    chosen.suspects.handle_link_down(FAR, Reason.UNSUPPORTED, 0.0)
    assert not looks(), "who takes no part in content is not missed"
    chosen.suspects.forgive(FAR)
    chosen.suspects.handle_link_down(FAR, Reason.CRASHED, 0.0)
    assert looks()
    assert not chosen.lost_sight("stock", 0.0)
    assert not looks(FAR)
    chosen.suspects.handle_link_down(NEAR, Reason.CRASHED, 0.0)
    assert chosen.lost_sight("stock", 0.0)
    assert not chosen.lost_sight("stock", 60.0), "for as long as it is left out"


def test_so_many_who_were_named_are_remembered_and_whoever_names_more_is_believed() -> None:
    suspects = Suspects(ContentConfig(routes=2))
    named, senders = ([PeerId(bytes([first + number]) * 32) for number in range(3)] for first in (10, 20))
    for peer, sender in zip(named, senders, strict=True):
        suspects.note_named(peer, sender)
    for peer in named:
        suspects.avoid(peer, 0.0)
    assert [suspects.heeds(sender, 1.0) for sender in senders] == [False, False, True]
    suspects.note_named(senders[2], senders[2])
    suspects.avoid(senders[2], 1.0)
    assert suspects.heeds(senders[2], 2.0), "who names itself may have been away for once"
    suspects.note_named(named[2], senders[2])
    suspects.avoid(named[2], 1.0)
    assert not suspects.heeds(senders[2], 2.0), "there is room again for one that turned out"
