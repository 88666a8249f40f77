"""What the application asks of content by either way, and what is durable before it is said."""

from __future__ import annotations

from random import Random

from tests.content.audience import Audience

from linnet.content.commands import (
    ContentCommand,
    ContentIs,
    Ended,
    ForgetContent,
    GroupAt,
    InGroups,
    ListContent,
    Match,
    Outcome,
    PublishContent,
    Standing,
    SubscribeContent,
    UnsubscribeContent,
    Via,
)
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.commands import (
    CloseGroup,
    ExamineGroups,
    FastCommand,
    GroupOpened,
    GroupsStatus,
    JoinGroups,
    LeaveGroups,
    OpenGroup,
)
from linnet.core.effects import AfterCommit, Deliver, Reply
from linnet.core.ids import Contact
from linnet.core.inputs import Asked
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import Ended as NoMore
from linnet.machine.commands import Declined, Done
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Start
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore

US = seeded_identity(1, "us", START)
ON = PeerConfig(kademlia=KademliaConfig(), content=ContentConfig())
Asking = ContentCommand | FastCommand | Unsubscribe | Consumed


class Desk:
    """A node that knows nobody, so that it is the rendezvous of everything."""

    def __init__(self, store: MemoryStore | None = None, config: PeerConfig = ON) -> None:
        self.store = store or MemoryStore()
        self.peer = Peer(config, US, self.store, Random(1))
        self.peer.handle(Asked(1, Start()), START)
        self._request = 1

    def ask(self, command: Asking) -> list[Effect]:
        self._request += 1
        return self.peer.handle(Asked(self._request, command), START)

    def answer(self, command: Asking) -> object:
        """The one answer to a command, at once or when it is durable."""
        (reply,) = [each for each in plain(self.ask(command)) if isinstance(each, Reply)]
        assert reply.request == self._request
        return reply.result

    def reads(self, reader: int) -> bool:
        """Whether somebody reads under this number."""
        assert self.peer.parts.content is not None
        return reader in self.peer.parts.content.own_subscriptions


def plain(effects: list[Effect]) -> list[object]:
    """All effects, those that wait for the commit too."""
    out: list[object] = []
    for effect in effects:
        out += effect.effects if isinstance(effect, AfterCommit) else [effect]
    return out


def matches(effects: list[Effect]) -> list[tuple[int, bytes, int]]:
    delivered = [each for each in plain(effects) if isinstance(each, Deliver)]
    items = [(each.subscription, item) for each in delivered for item in each.items]
    return [(reader, item.body, item.number) for reader, item in items if isinstance(item, Match)]


def test_what_is_kept_is_durable_before_anybody_is_told() -> None:
    desk = Desk()
    (standing,) = [
        each for each in desk.ask(SubscribeContent(7, "a", "kept")) if isinstance(each, AfterCommit)
    ]
    assert standing.effects == (Reply(2, Standing("a", "a")),)
    effects = desk.ask(PublishContent("a", b"x"))
    assert not any(isinstance(each, Reply | Deliver) for each in effects)
    assert matches(effects) == [(7, b"x", 1)]
    assert [type(each.result) for each in plain(effects) if isinstance(each, Reply)] == [Outcome]


def test_without_a_name_nothing_waits_for_the_store() -> None:
    desk = Desk()
    desk.ask(SubscribeContent(7, "a"))
    effects = desk.ask(PublishContent("a", b"x"))
    assert not any(isinstance(each, AfterCommit) for each in effects)
    assert matches(effects) == [(7, b"x", 1)]
    assert desk.answer(Consumed(7, 1)) == Done()
    assert desk.answer(Consumed(7, 1)) == Declined(
        Reason.TOO_MANY, "0 items were handed over and not handled"
    )
    assert desk.answer(Unsubscribe(7)) == Done()
    assert matches(desk.ask(PublishContent("a", b"y"))) == []


def test_after_a_restart_what_was_not_handled_comes_again_under_its_number() -> None:
    desk = Desk()
    desk.ask(SubscribeContent(7, "a", "kept"))
    for body in (b"x", b"y"):
        desk.ask(PublishContent("a", body))
    desk.ask(Consumed(7, 1))
    again = Desk(desk.store)
    assert matches(again.ask(SubscribeContent(3, "a", "kept"))) == [(3, b"y", 2)]
    assert matches(again.ask(PublishContent("a", b"z"))) == [(3, b"z", 3)]
    told = again.answer(ListContent())
    assert isinstance(told, ContentIs)
    assert [(each.name, each.waiting, each.via) for each in told.subscriptions] == [("kept", 2, Via.SCOUT)]
    effects = plain(again.ask(ForgetContent("kept")))
    assert Deliver(3, (NoMore(None),)) in effects
    assert [each.result for each in effects if isinstance(each, Reply)] == [Ended()]
    assert matches(Desk(desk.store).ask(SubscribeContent(3, "a", "kept"))) == []


def test_by_groups_and_by_both() -> None:
    desk = Desk()
    assert isinstance(desk.answer(OpenGroup("a")), GroupOpened)
    assert desk.answer(SubscribeContent(7, "a", "fast", Via.FAST)) == Standing("a", "")
    assert desk.answer(SubscribeContent(8, "a", None, Via.AUTO)) == Standing("a", "a")
    assert matches(desk.ask(PublishContent("a", b"x"))) == [(8, b"x", 1)]
    assert desk.answer(Unsubscribe(8)) == Done()
    assert desk.answer(ForgetContent("fast")) == Ended()
    assert matches(desk.ask(PublishContent("a", b"y"))) == []


def test_groups_of_ours_are_there_after_a_restart_until_they_are_closed() -> None:
    desk = Desk()
    desk.ask(OpenGroup("b/a", False))
    again = Desk(desk.store)
    told = again.answer(ExamineGroups())
    assert isinstance(told, GroupsStatus)
    assert [(each.predicate, each.listed) for each in told.groups] == [("a/b", False)]
    assert again.answer(CloseGroup("a/b")) == Ended()
    last = Desk(desk.store).answer(ExamineGroups())
    assert isinstance(last, GroupsStatus)
    assert last.groups == ()


def test_who_joins_groups_by_itself_is_one_reader_like_others() -> None:
    desk = Desk()
    desk.ask(JoinGroups(9, "a"))
    assert desk.reads(9)
    assert desk.answer(LeaveGroups(9)) == Ended()
    assert desk.answer(LeaveGroups(9)) == Declined(Reason.UNKNOWN, "there is no subscription 9")
    assert desk.answer(UnsubscribeContent(9)) == Declined(Reason.UNKNOWN, "there is no subscription 9")


def test_what_cannot_be_is_declined_and_leaves_nothing() -> None:
    desk = Desk()
    assert isinstance(desk.answer(SubscribeContent(7, "a[")), Declined)
    assert not desk.reads(7)
    missing = "there is no kept subscription 'x' here"
    assert desk.answer(ForgetContent("x")) == Declined(Reason.UNKNOWN, missing)
    assert isinstance(desk.answer(PublishContent("a[1,2]", b"")), Declined)


def test_if_one_of_both_ways_declines_nothing_is_left_of_the_other() -> None:
    config = PeerConfig(kademlia=KademliaConfig(), content=ContentConfig(), fast=FastConfig(subscriptions=1))
    desk = Desk(config=config)
    assert desk.answer(SubscribeContent(7, "a", None, Via.AUTO)) == Standing("a", "a")
    assert desk.answer(SubscribeContent(8, "b", None, Via.AUTO)) == Declined(
        Reason.TOO_MANY, "at most 1 subscriptions"
    )
    assert desk.answer(SubscribeContent(8, "b")) == Standing("b", "b")
    assert matches(desk.ask(PublishContent("b", b"x"))) == [(8, b"x", 1)]


def in_groups(effects: list[Effect]) -> list[InGroups]:
    delivered = [each for each in plain(effects) if isinstance(each, Deliver)]
    return [item for each in delivered for item in each.items if isinstance(item, InGroups)]


def test_who_subscribes_by_groups_is_told_in_how_many_it_is_and_nothing_by_rendezvous() -> None:
    desk = Desk()
    at = GroupAt(Contact(US.peer, ()), "a")
    assert isinstance(desk.answer(OpenGroup("a")), GroupOpened)
    assert in_groups(desk.ask(SubscribeContent(7, "a", "kept", Via.FAST, at))) == [InGroups(1, 0, 0, 900.0)]
    assert in_groups(desk.ask(SubscribeContent(8, "a"))) == []
    told = desk.answer(ListContent())
    assert isinstance(told, ContentIs)
    assert [each.groups for each in told.subscriptions] == [1, None]
    desk.ask(Unsubscribe(7))
    assert in_groups(desk.ask(SubscribeContent(9, "a", "kept", Via.FAST, at))) == [InGroups(1, 0, 0, 900.0)]
    assert desk.answer(Consumed(9, 1)) == Declined(
        Reason.TOO_MANY, "0 items were handed over and not handled"
    ), "it is not counted"


def test_who_is_in_no_group_is_told_so_and_again_when_a_publisher_has_opened_one() -> None:
    world = Audience(6, "stock/price[0,10]", listed=True)
    reader = world.names[3]
    world.asked(reader, SubscribeContent(7, "apple/stock", None, Via.FAST), 5.0)
    assert world.in_groups[reader] == [InGroups(0, 0, 0, 60.0)]
    world.asked(world.names[1], OpenGroup("apple/stock"), 5.0)
    world.run(70.0)
    assert world.in_groups[reader] == [InGroups(0, 0, 0, 60.0), InGroups(1, 0, 0, 900.0)]
