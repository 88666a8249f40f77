"""Names of whole nodes: the example of Toth 2013 (table 1.2.1), what goes wrong, what others see of it."""

from __future__ import annotations

from random import Random

import pytest
from tests.names.people import DAY, NOW, PLACE_A, PLACE_B, PLACE_C, X, Y, Z, person, place
from tests.names.town import HELLO, Town

from linnet.core.effects import Hold
from linnet.core.hello import Hello
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.names.block_store import make_file
from linnet.names.commands import (
    ExportNames,
    Fault,
    ListNames,
    ListPetnames,
    NamesAre,
    NamesFile,
    NotResolved,
    Petname,
    PetnamesAre,
    PublishName,
    RemoveName,
    RemovePetname,
    Resolved,
    ResolveName,
    SetPetname,
    Step,
    TakeInNames,
    TakenIn,
    Via,
    WantsPassword,
)
from linnet.names.config import NamesConfig
from linnet.names.derivation import Password, Stretched, derive, stretch
from linnet.names.part import FILE_BYTES, PURPOSE
from linnet.names.records import Statement, seal_block
from linnet.sim.seeded_random import SeededEntropy
from linnet.trace.records import Kind

ALICE, BOB, CAROL = person("alice"), person("bob"), person("carol")
KEY = to_text(Sort.PERSON, ALICE.author)
MUSIC = PublishName("music", PLACE_C, (Z,), lifetime=DAY, renew=False)


def hers(label: str, password: str = "swordfish") -> Stretched:
    return stretch(Password(password), ALICE.author, label)


def resolving(address: str, password: str) -> ResolveName:
    """An address whose first label is in Alice's zone and has a password."""
    return ResolveName(address, True, hers(address.split(".")[0], password))


def table() -> Town:
    """Alice's zone of the table, and a relay that everybody has a link to."""
    town = Town("alice", "bob", "carol", "relay")
    for name in ("alice", "bob", "carol"):
        town.link(name, "relay")
    town.published("alice", PublishName("+", PLACE_A, (X,), lifetime=DAY, renew=False))
    town.published("alice", PublishName("tech", PLACE_B, (X, Y), lifetime=DAY, renew=False))
    town.published("alice", MUSIC)
    town.ask("bob", SetPetname("alice", ALICE.author))
    town.published("bob", PublishName("alice", zone=ALICE.author, lifetime=2 * DAY, renew=False))
    town.ask("carol", SetPetname("bob", BOB.author))
    return town


def test_bob_and_carol_come_to_the_same_place_and_see_by_whose_word() -> None:
    town = table()
    bobs = town.resolved("bob", ResolveName("music.alice"))
    carols = town.resolved("carol", ResolveName("music.alice.bob"))
    assert (bobs.place, bobs.contacts) == (carols.place, carols.contacts) == (PLACE_C, (Z,))
    end = int(NOW) + DAY
    last = Step(Via.PLACE, "music", ALICE.author, None, end, ALICE.card.device, PLACE_C)
    assert bobs.path == (Step(Via.PETNAME, "alice", None, ALICE.author, None), last)
    assert carols.path == (
        Step(Via.PETNAME, "bob", None, BOB.author, None),
        Step(Via.DELEGATION, "alice", BOB.author, ALICE.author, end + DAY, BOB.card.device),
        last,
    )
    assert (bobs.expires, carols.expires) == (end, end)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("tech.alice.bob.gnu", PLACE_B),
        ("music.alice.bob.gads", PLACE_C),
        (f"tech.{KEY}", PLACE_B),
        (f"{KEY}.zkey", PLACE_A),
        (KEY, PLACE_A),
        ("alice.bob", PLACE_A),
        ("+.alice.bob", PLACE_A),
    ],
)
def test_every_form_of_address_leads_somewhere(address: str, found: bytes) -> None:
    assert table().resolved("carol", ResolveName(address)).place == found


def test_what_is_no_petname_may_be_a_label_of_our_own_zone() -> None:
    town = table()
    own = town.resolved("alice", ResolveName("music"))
    assert own.path[0] == Step(Via.OWN, "", None, ALICE.author, None)
    assert own.place == PLACE_C
    town.ask("bob", RemovePetname("alice"))
    assert town.resolved("bob", ResolveName("music.alice")).path[0].via is Via.OWN


def test_neither_stores_nor_links_see_a_label_a_zone_or_a_place() -> None:
    town = table()
    town.published("alice", PublishName("secret", PLACE_B, (X,), stretched=hers("secret")))
    town.resolved("bob", resolving("secret.alice", "swordfish"))
    town.resolved("carol", ResolveName("music.alice.bob"))
    kept = b"".join(raw for _, raw in town.houses["relay"].store.cells.scan("names kept"))
    seen = b"".join(town.sent) + kept + make_file(town.houses["relay"].names.shelf.records, NOW)
    assert len(town.sent) > 10
    assert len(kept) > 5000
    # Who handed it over a store knows from the link, and counts; that is not in what it hands out.
    assert ALICE.device.public not in b"".join(town.sent)
    hidden = (ALICE.author, BOB.author, PLACE_A, PLACE_B, PLACE_C, X.peer, Z.peer)
    for each in (*hidden, b"music", b"alice", b"secret", b"swordfish", b"peer1.example"):
        assert bytes(each) not in seen


def test_without_its_password_a_record_does_not_exist() -> None:
    town = table()
    town.published("alice", PublishName("club", PLACE_B, (X,), stretched=hers("club")))
    assert town.resolved("bob", resolving("club.alice", "swordfish")).place == PLACE_B
    for command in (ResolveName("club.alice"), resolving("club.alice", "guess")):
        failed = town.failed("bob", command)
        assert (failed.fault, failed.label) == (Fault.UNKNOWN, "club")
    gone = town.published("alice", RemoveName("club", hers("club")))
    assert gone.removed
    failed = town.failed("bob", resolving("club.alice", "swordfish"))
    assert failed.fault is Fault.REMOVED


def test_a_password_is_asked_for_where_the_walk_has_come_to_its_zone() -> None:
    town = table()
    town.published("alice", PublishName("club", PLACE_B, (X,), stretched=hers("club")))
    wanted = town.ask("carol", ResolveName("club.alice.bob", True))
    assert wanted == WantsPassword("club.alice.bob", ALICE.author, "club")
    assert town.resolved("carol", resolving("club.alice.bob", "swordfish")).place == PLACE_B
    assert town.resolved("alice", resolving("club", "swordfish")).path[0].via is Via.OWN
    assert town.failed("alice", ResolveName("club")).fault is Fault.UNKNOWN


def test_a_record_ends_and_that_is_said() -> None:
    town = table()
    town.now += DAY
    failed = town.failed("carol", ResolveName("music.alice.bob"))
    assert (failed.fault, failed.label, failed.zone) == (Fault.EXPIRED, "music", ALICE.author)
    assert [step.via for step in failed.path] == [Via.PETNAME, Via.DELEGATION]


@pytest.mark.parametrize("command", [RemoveName("music"), PublishName("music", lifetime=0)])
def test_a_record_is_removed(command: RemoveName | PublishName) -> None:
    town = table()
    town.resolved("bob", ResolveName("music.alice"))
    assert town.published("alice", command).removed
    assert town.failed("bob", ResolveName("music.alice")).fault is Fault.REMOVED
    assert town.resolved("bob", ResolveName("tech.alice")).place == PLACE_B


def test_an_unknown_label_is_named_with_the_step_at_which_it_is_missing() -> None:
    town = table()
    failed = town.failed("carol", ResolveName("cooking.alice.bob"))
    assert (failed.fault, failed.label, failed.zone, len(failed.path)) == (
        Fault.UNKNOWN,
        "cooking",
        ALICE.author,
        2,
    )
    failed = town.failed("carol", ResolveName("music.dave.bob"))
    assert (failed.label, failed.zone, len(failed.path)) == ("dave", BOB.author, 1)
    failed = town.failed("carol", ResolveName("music.erin"))
    assert (failed.fault, failed.label, failed.zone, failed.path) == (Fault.UNKNOWN, "erin", None, ())
    assert "you know nobody by the name 'erin'" in failed.detail


def test_paths_that_run_in_circles_or_too_far_end() -> None:
    town = table()
    town.published("alice", PublishName("bob", zone=BOB.author))
    circle = town.failed("bob", ResolveName("music.bob.alice.bob.alice"))
    assert (circle.fault, circle.label) == (Fault.LOOPING, "bob")
    town.published("alice", PublishName("+", zone=BOB.author))
    town.published("bob", PublishName("+", zone=ALICE.author))
    circle = town.failed("carol", ResolveName("bob"))
    assert (circle.fault, circle.label, circle.zone) == (Fault.LOOPING, "+", BOB.author)
    for n in range(9):
        town.published("alice", PublishName(f"l{n}", zone=ALICE.author))
    far = town.failed("bob", ResolveName(".".join([*(f"l{n}" for n in range(9)), "alice"])))
    assert (far.fault, far.label, len(far.path)) == (Fault.TOO_DEEP, "l0", 9)


def test_nothing_follows_a_place() -> None:
    failed = table().failed("carol", ResolveName("loud.music.alice.bob"))
    assert (failed.fault, failed.label) == (Fault.NOT_A_ZONE, "music")


def test_what_another_signed_is_forged_and_does_not_hide_what_is_right() -> None:
    town = table()
    keys = derive(ALICE.author, "fake")
    bogus = Statement("fake", int(NOW * 1000), int(NOW) + DAY, place(PLACE_A, X))
    block = seal_block(keys, CAROL.device, CAROL.card, bogus, Random(1).randbytes)
    relay = town.houses["relay"]
    assert relay.names.shelf.put(block, CAROL.peer, NOW) is None
    failed = town.failed("bob", ResolveName("fake.alice"))
    assert (failed.fault, failed.label) == (Fault.FORGED, "fake")
    assert town.houses["bob"].records[-1].reason is Reason.BAD_SIGNATURE
    town.published("alice", PublishName("fake", PLACE_B, (X,)))
    assert town.resolved("bob", ResolveName("fake.alice")).place == PLACE_B


def test_a_device_that_was_revoked_says_nothing_more() -> None:
    town = table()
    entropy = SeededEntropy(0, "identity/alice")
    revocation = revoke(SigningKey.generate(entropy), ALICE.card.device, int(NOW))
    assert town.houses["bob"].context.cards.revoke(revocation)
    assert town.failed("bob", ResolveName("music.alice")).fault is Fault.FORGED
    assert town.resolved("carol", ResolveName("music.alice.bob")).place == PLACE_C


def test_an_older_version_is_not_believed_again() -> None:
    town = Town("alice", "bob", "relay")
    town.link("bob", "relay")
    old = town.houses["alice"].names.zone.publish("music", place(PLACE_A, X), 30 * DAY, NOW, False).block
    new = town.houses["alice"].names.zone.publish("music", place(PLACE_C, Z), DAY, NOW + 1, False).block
    shelf = town.houses["relay"].names.shelf
    town.ask("bob", SetPetname("alice", ALICE.author))
    shelf.put(new, ALICE.peer, NOW)
    assert town.resolved("bob", ResolveName("music.alice")).place == PLACE_C
    shelf.sweep(NOW + 100 * DAY)
    shelf.put(old, CAROL.peer, NOW)
    assert town.resolved("bob", ResolveName("music.alice")).place == PLACE_C, "what we have seen is newer"
    town.houses["bob"].restart()
    town.link("bob", "relay")
    town.now = NOW + 2 * DAY
    replayed = town.failed("bob", ResolveName("music.alice"))
    assert (replayed.fault, replayed.label) == (Fault.REPLAYED, "music")
    assert town.houses["bob"].records[-1].reason is Reason.STALE
    assert shelf.find(old.lookup) == (old,)


def test_relays_are_asked_before_others() -> None:
    town = Town("alice", "bob", "relay", config=NamesConfig(copies=1))
    town.link("alice", "bob")
    town.link("alice", "relay", Hello(1, 1, HELLO.protocols, ("relay",)))
    assert town.published("alice", MUSIC).handed == (person("relay").peer,)


def test_of_several_answers_the_newest_right_one_counts() -> None:
    town = Town("alice", "bob", "relay", "other")
    zone = town.houses["alice"].names.zone
    old = zone.publish("music", place(PLACE_A, X), DAY, NOW).block
    new = zone.publish("music", place(PLACE_C, Z), DAY, NOW + 1).block
    town.houses["relay"].names.shelf.put(new, None, NOW)
    town.houses["other"].names.shelf.put(old, None, NOW)
    town.link("bob", "other")
    assert town.resolved("bob", ResolveName(f"music.{KEY}")).place == PLACE_A
    town.link("bob", "relay")
    assert town.resolved("bob", ResolveName(f"music.{KEY}")).place == PLACE_C


def test_who_does_not_answer_is_not_waited_for_and_offline_what_is_remembered_counts() -> None:
    town = table()
    town.resolved("bob", ResolveName("music.alice"))
    town.silent["relay"] = None
    assert town.ask("bob", ResolveName("music.alice")) is None
    town.pass_time(2.0)
    found = town.houses["bob"].replies[max(town.houses["bob"].replies)]
    assert isinstance(found, Resolved)
    assert found.place == PLACE_C
    assert town.houses["bob"].records[-1].reason is Reason.TIMEOUT
    assert town.ask("bob", ResolveName("tech.alice")) is None
    town.unlink("bob", "relay")
    last = town.houses["bob"].replies[max(town.houses["bob"].replies)]
    assert isinstance(last, NotResolved)
    assert last.fault is Fault.UNANSWERED
    assert town.failed("bob", ResolveName("tech.alice")).fault is Fault.UNANSWERED


def test_who_keeps_what_is_told_and_stores_that_come_later_get_it() -> None:
    relay = Contact(person("relay").peer, ("tls://relay.example:7700",))
    town = Town("alice", "relay", config=NamesConfig(stores=(relay,)))
    alice = town.houses["alice"]
    town.start("alice")
    assert Hold(relay.peer, relay.hints, PURPOSE) in alice.holds
    assert town.published("alice", MUSIC).handed == ()
    town.link("alice", "relay")
    listed = town.ask("alice", ListNames())
    assert isinstance(listed, NamesAre)
    (name,) = listed.names
    assert (name.label, name.place, name.contacts, name.told) == (
        "music",
        PLACE_C,
        (Z,),
        ((relay.peer, None),),
    )


def test_what_is_to_go_on_is_renewed_for_as_long_as_the_node_runs() -> None:
    town = Town("alice", "relay")
    town.link("alice", "relay")
    alice = town.houses["alice"]
    town.start("alice")
    town.published("alice", PublishName("music", PLACE_C, (Z,), lifetime=7200))
    town.published("alice", PublishName("once", PLACE_C, (Z,), lifetime=7200, renew=False))
    town.pass_time(5 * 3600)
    relay = town.houses["relay"].names.shelf
    (block,) = relay.find(derive(ALICE.author, "music").lookup)
    assert block.expires > town.now
    listed = town.ask("alice", ListNames())
    assert isinstance(listed, NamesAre)
    assert [each.label for each in listed.names] == ["music"]
    assert any(each.kind is Kind.EXPIRED for each in alice.records)


def test_who_does_not_speak_of_names_is_not_spoken_to_about_them() -> None:
    town = Town("alice", "relay")
    town.link("alice", "relay", Hello(1, 1, {"link": 1}))
    assert town.published("alice", MUSIC).handed == ()
    assert town.sent == []
    assert "names" in HELLO.protocols


def test_what_cannot_be_is_declined_with_a_reason() -> None:
    town = Town("alice", config=NamesConfig(resolving=1))
    for command, reason in (
        (PublishName("music", lifetime=5), Reason.NOT_ALLOWED),
        (PublishName("music", PLACE_C, ()), Reason.TOO_MANY),
        (PublishName("mu sic", PLACE_C, (Z,)), Reason.MALFORMED),
        (ResolveName("music..alice"), Reason.MALFORMED),
        (RemovePetname("bob"), Reason.UNKNOWN),
    ):
        declined = town.ask("alice", command)
        assert isinstance(declined, Declined)
        assert declined.reason is reason
    town = Town("alice", "relay", config=NamesConfig(resolving=1))
    town.link("alice", "relay")
    town.silent["relay"] = None
    assert town.ask("alice", ResolveName(KEY)) is None
    declined = town.ask("alice", ResolveName(KEY))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.QUEUE_FULL


def test_petnames_are_listed_and_kept() -> None:
    town = Town("bob")
    known = PetnamesAre((Petname("alice", ALICE.author),))
    assert town.ask("bob", SetPetname("Alice", ALICE.author)) == known
    town.houses["bob"].restart()
    assert town.ask("bob", ListPetnames()) == known
    assert town.ask("bob", RemovePetname("alice")) == PetnamesAre(())


def test_records_travel_as_a_file() -> None:
    town = Town("alice", "bob")
    town.published("alice", MUSIC)
    file = town.ask("alice", ExportNames())
    assert isinstance(file, NamesFile)
    assert file.records == 1
    assert b"music" not in file.data
    assert town.failed("bob", ResolveName(f"music.{KEY}")).fault is Fault.UNANSWERED
    assert town.ask("bob", TakeInNames(file.data)) == TakenIn(1, ())
    assert town.resolved("bob", ResolveName(f"music.{KEY}")).place == PLACE_C
    town.now += DAY
    assert town.ask("bob", TakeInNames(file.data)) == TakenIn(0, (Reason.STALE,))
    assert town.houses["bob"].records[-1].reason is Reason.STALE
    for data, reason in ((b"rubbish", Reason.MALFORMED), (bytes(FILE_BYTES + 1), Reason.TOO_LARGE)):
        declined = town.ask("bob", TakeInNames(data))
        assert isinstance(declined, Declined)
        assert declined.reason is reason


def test_every_timer_that_is_set_has_a_handler() -> None:
    for house in table().houses.values():
        assert {type(timer) for timer in house.timers} <= {*house.router.table.timers}
