"""The keys of a name: what they depend on, and what they do not show."""

from __future__ import annotations

import pytest
from tests.names.people import person

from linnet.core.errors import BadText, Refused
from linnet.names.derivation import NameKeys, Password, derive, owner_key, stretch

ALICE, BOB = person("alice"), person("bob")


def behind(password: str, label: str = "music") -> NameKeys:
    return derive(ALICE.author, label, stretch(Password(password), ALICE.author, label))


def test_every_zone_label_and_password_has_a_lookup_key_of_its_own() -> None:
    keys = [
        derive(ALICE.author, "music"),
        derive(ALICE.author, "tech"),
        derive(BOB.author, "music"),
        behind("swordfish"),
        behind("swordfisj"),
        behind("swordfish", "tech"),
    ]
    owner = b"o" * 32
    assert len({each.lookup for each in keys}) == len(keys)
    assert len({each.seal_key(owner) for each in keys}) == len(keys)
    assert not {each.lookup for each in keys} & {each.seal_key(owner) for each in keys}


def test_keys_are_the_same_for_everybody_who_knows_the_name() -> None:
    assert derive(ALICE.author, "music").lookup == derive(ALICE.author, "music").lookup
    once, again = map(behind, ("caf\u00e9", "cafe\u0301"))
    assert once == again


def test_the_lookup_key_is_fixed() -> None:
    """Changing it would make every record that is published unfindable."""
    assert derive(ALICE.author, "music").lookup.hex()[:16] == "6562e4c25d6daae5"
    assert behind("swordfish").lookup.hex()[:16] == "473a83676e12d760"


def test_labels_of_one_device_have_owner_keys_that_do_not_match() -> None:
    lookups = [derive(ALICE.author, label).lookup for label in ("music", "tech")]
    owners = [owner_key(ALICE.device, lookup).public for lookup in lookups]
    assert len({*owners, ALICE.device.public, ALICE.author}) == 4
    assert owner_key(BOB.device, lookups[0]).public not in owners


@pytest.mark.parametrize("text", ["", "x" * 1025])
def test_a_password_has_bounds(text: str) -> None:
    with pytest.raises(BadText, match="a password has 1 to 1024 bytes"):
        stretch(Password(text), ALICE.author, "music")


def test_a_password_that_was_stretched_for_one_label_opens_no_other() -> None:
    stretched = stretch(Password("swordfish"), ALICE.author, "music")
    for zone, label in ((ALICE.author, "tech"), (BOB.author, "music")):
        with pytest.raises(Refused, match="for another label"):
            derive(zone, label, stretched)


def test_secrets_do_not_show_where_they_are_printed() -> None:
    keys = derive(ALICE.author, "music")
    assert repr(Password("swordfish")) == "Password(…)"
    assert repr(stretch(Password("swordfish"), ALICE.author, "music")) == "Stretched(…)"
    assert repr(keys) == "NameKeys(…)"
