from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import DeviceId
from linnet.event.event import Event
from linnet.identity.cards import revoke
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.levels import INFINITE
from linnet.rooms.access.view import View
from linnet.rooms.content import (
    JOIN_RULES,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    ROOM_VERSION,
    Create,
    JoinRule,
    JoinRules,
    Membership,
    Newcomers,
    Power,
    Relay,
    Retention,
    Revoked,
)
from linnet.testing.rooms import Chronicle, person, person_key, relay_key


class Stage:
    """A room of which every event is added as it is written."""

    def __init__(self) -> None:
        self.room = Chronicle("founder", creators=["second"])
        self.dag = ControlDag(self.room.create)
        self.member("founder", "founder", Membership.JOIN)

    def member(self, who: str, of: str, membership: Membership) -> None:
        self.add(self.room.member(who, of, membership, self.dag.heads))

    def say(self, who: str, kind: str, key: str, content: object) -> None:
        self.add(self.room.sign(who, kind, key, content, self.dag.heads))  # type: ignore[arg-type]

    def add(self, event: Event) -> None:
        assert self.dag.add(event) is None

    @property
    def view(self) -> View:
        return self.dag.view()


def test_members() -> None:
    stage = Stage()
    for name in ("alice", "bob", "carol"):
        stage.member("founder", name, Membership.INVITE)
    stage.member("alice", "alice", Membership.JOIN)
    stage.member("founder", "bob", Membership.BAN)
    founder, alice, bob, carol = (person(name).author for name in ("founder", "alice", "bob", "carol"))
    assert stage.view.joined() == tuple(sorted([founder, alice]))
    assert dict(stage.view.members()) == {
        founder: Membership.JOIN,
        alice: Membership.JOIN,
        bob: Membership.BAN,
        carol: Membership.INVITE,
    }
    assert stage.view.membership(bob) is Membership.BAN
    assert stage.view.membership(person("stranger").author) is Membership.LEAVE


def test_whether_it_is_encrypted_is_said_by_its_first_event() -> None:
    stage = Stage()
    assert not stage.view.is_encrypted
    create = stage.view.create
    content = Create(ROOM_VERSION, (), bytes(16), Newcomers.FROM_NOW)
    stage.view.create = replace(create, content=content)
    assert stage.view.is_encrypted


def test_levels() -> None:
    stage = Stage()
    assert stage.view.power() == Power()
    power = Power(users={person("alice").author: 30}, users_default=1)
    stage.say("founder", POWER, "", power)
    assert stage.view.power() == power
    levels = [stage.view.level_of(person(name).author) for name in ("founder", "second", "alice", "bob")]
    assert levels == [INFINITE, INFINITE, 30, 1]
    assert stage.view.levels.ban == 50


def test_rule_and_retention() -> None:
    stage = Stage()
    assert (stage.view.join_rule(), stage.view.retention()) == (JoinRule.INVITE, None)
    stage.say("founder", JOIN_RULES, "", JoinRules(JoinRule.KNOCK))
    stage.say("founder", RETENTION, "", Retention(5000))
    assert (stage.view.join_rule(), stage.view.retention()) == (JoinRule.KNOCK, 5000)


def test_relays() -> None:
    stage = Stage()
    one, two = person("relay one"), person("relay two")
    stage.say("founder", RELAY, relay_key("relay one"), Relay(True, one.author, ("tls://one:1",)))
    stage.say("founder", RELAY, relay_key("relay two"), Relay(True, two.author))
    before = stage.view
    stage.say("founder", RELAY, relay_key("relay two"), Relay(False, two.author))
    assert stage.view.relays() == ((one.peer, Relay(True, one.author, ("tls://one:1",))),)
    assert (stage.view.is_relay(one.peer), stage.view.is_relay(two.peer)) == (True, False)
    assert (stage.view.is_relay_person(one.author), stage.view.is_relay_person(two.author)) == (True, False)
    assert [peer for peer, _ in before.relays()] == sorted([one.peer, two.peer])
    assert before.is_relay_person(two.author)


def test_revocations_are_of_a_person_and_a_device() -> None:
    stage = Stage()
    lost = DeviceId(b"lost it!")
    stage.say("founder", REVOCATION, lost.hex(), Revoked(revoke(person_key("founder"), lost, 5)))
    assert stage.view.is_revoked(person("founder").author, lost)
    assert not stage.view.is_revoked(person("alice").author, lost)
    assert not stage.view.is_revoked(person("founder").author, person("founder").card.device)


def test_a_view_of_an_earlier_state_stays_as_it_was() -> None:
    stage = Stage()
    earlier = View(stage.dag, stage.dag.current)
    stage.member("founder", "alice", Membership.INVITE)
    assert earlier.membership(person("alice").author) is Membership.LEAVE
    assert stage.view.membership(person("alice").author) is Membership.INVITE
