"""Content at a node: its subscriptions, and the peers of the hash table that take part in content.

Events come by rendezvous (`content.scout`), by groups of publishers (`content.fast`), or by both. Either way
an event waits in the inbox of its subscription, and its arrival is acknowledged once it is durable.

Not every node of the hash table takes part in content. The hello of a link says whether one does; nodes that
do not are left out of lookups and tables, so that a rendezvous is the nearest node that takes part.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.content.attribute_keys import Directory, Locate, Located
from linnet.content.commands import (
    ContentIs,
    Ended,
    ForgetContent,
    InGroups,
    ListContent,
    Standing,
    SubscribeContent,
    UnsubscribeContent,
    Via,
)
from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.commands import JoinGroups, LeaveGroups
from linnet.content.fast.fast_delivery import FastDelivery
from linnet.content.fast.memberships import GroupsSought
from linnet.content.inbox import Inbox, Wanted
from linnet.content.predicate import read_predicate
from linnet.content.scout import Scout
from linnet.core.errors import BadText, Refused
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.items import Ended as NoMore
from linnet.machine.commands import Declined, Done, declined
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_notice
from linnet.overlay.kademlia.part import Kademlia
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.overlay.kademlia.value_records import NodesFound, SeekNodes
from linnet.trace.records import Kind, Record

PROTOCOL = "content"
PROTOCOLS = (PROTOCOL, "fast")
"""The protocols of a node that takes part."""
ABSENT = "this node does not take part in content: set content.enabled = true"
UNFOUND = f"{ABSENT} and, as rendezvous are found by the hash table, kademlia.enabled = true"
LACKING = 4096
"""Peers without content that are remembered; a forgotten one costs a link."""


class NodeFinder(Part):
    """A part that answers `SeekNodes` in place of Kademlia, because it knows the network by other means."""

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        raise NotImplementedError


class TableDirectory:
    """A directory that reads the routing table of Kademlia."""

    def __init__(self, kademlia: Kademlia) -> None:
        self._table = kademlia.table

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        return [*self._table.find_nearest(key, count)]


class _Speaking:
    """A directory without the peers that are known not to take part in content."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.lacking: dict[PeerId, None] = {}

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        near = self._directory.closest(key, count + len(self.lacking))
        return [contact for contact in near if contact.peer not in self.lacking][:count]

    def meet(self, event: LinkUp) -> bool:
        """Note from a link's hello whether a peer takes part, and return it."""
        if PROTOCOL in event.hello.protocols:
            self.lacking.pop(event.peer, None)
            return True
        self.lacking[event.peer] = None
        if len(self.lacking) > LACKING:
            del self.lacking[next(iter(self.lacking))]
        return False

    def filter(self, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
        """Return the contacts of a lookup without the peers that do not take part."""
        return tuple(contact for contact in contacts if contact.peer not in self.lacking)


class Content(Part):
    """The part for content: serves the application's commands, and passes links, lookups and events on."""

    def __init__(
        self,
        context: Context,
        config: ContentConfig,
        fast: FastConfig,
        listens: tuple[str, ...],
        directory: Directory,
        out: Outbox,
    ) -> None:
        self._config = config
        self._out = out
        self._speaking = speaking = _Speaking(directory)
        inbox = self._inbox = Inbox(config, context.store.cells, out)
        self.own_subscriptions = inbox.readers
        self.scout = Scout(context, config, speaking, out, inbox.take, inbox.promise)
        self.fast = FastDelivery(context, fast, config, speaking, listens, out, inbox.take, inbox.promise)
        self._in_groups: dict[int, InGroups] = {}
        """The groups of each subscription, as its reader was told last."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts of content."""
        return (self, self.scout, self.fast)

    def start(self, now: float) -> None:
        """Subscribe again for kept subscriptions, and open our groups again."""
        self.scout.start(now)
        self.fast.start(now)
        for number, wanted in self._inbox.kept:
            for refusal in self._admit(number, wanted):
                note = f"content: {refusal.detail}"[:200]
                self._out.record(Record(Kind.DROPPED, reason=refusal.reason, note=note))
            self._begin(number, now, returns=True)
        self.fast.reopen_groups(now)

    # Subscriptions.

    @on_command(SubscribeContent)
    def subscribe(self, request: int, command: SubscribeContent, now: float) -> None:
        """Open a subscription; one with a name also delivers what came while nobody read."""
        wanted = self._wanted(command)
        number, is_there = self._inbox.open(command.subscription, wanted, command.name)
        refusals = [] if is_there else self._admit(number, wanted)
        if refusals:
            # What of it was admitted is begun and ended again: others may have heard of it.
            self._begin(number, now)
            self._inbox.forget(number)
            self._end(number, now)
            self._out.reply(request, refusals[0])
            return
        standing = Standing(wanted.predicate, self._inbox.attribute(number), is_there)
        (self._out if command.name is None else self._out.committed).reply(request, standing)
        if not is_there:
            self._begin(number, now)
            return
        if wanted.via is not Via.SCOUT:
            self._tell_groups(number, command.subscription)
        self._inbox.hand(number)

    def _wanted(self, command: SubscribeContent) -> Wanted:
        predicate = read_predicate(command.predicate, self._config.attributes).text
        if command.at is None:
            return Wanted(predicate, command.via)
        if command.via is Via.SCOUT:
            raise Refused(Reason.MALFORMED, "a group is joined by fast or auto: scout knows no groups")
        group = read_predicate(command.at.group, self._config.attributes).text
        return Wanted(predicate, command.via, replace(command.at, group=group))

    def _admit(self, number: int, wanted: Wanted) -> list[Declined]:
        """Have ScoutSubs, groups or both keep a subscription; return the refusals."""
        refusals: list[Declined] = []
        if wanted.via is not Via.FAST:
            try:
                self._inbox.note_attribute(number, self.scout.admit_subscription(number, wanted.predicate))
            except (BadText, Refused) as error:
                refusals.append(declined(error))
        if wanted.via is not Via.SCOUT:
            try:
                self.fast.admit_subscription(None, JoinGroups(number, wanted.predicate, wanted.at))
            except (BadText, Refused) as error:
                refusals.append(declined(error))
        return refusals

    def _begin(self, number: int, now: float, returns: bool = False) -> None:
        if self.scout.reads(number):
            self.scout.begin_subscription(number, now, returns)
        if self.fast.reads(number):
            self.fast.begin_subscription(number, now)

    def _end(self, number: int, now: float) -> None:
        if self.scout.reads(number):
            self.scout.end_subscription(number, now)
        if self.fast.reads(number):
            self.fast.end_subscription(number, now)
        self._in_groups.pop(number, None)

    @on_command(UnsubscribeContent)
    def unsubscribe(self, request: int, command: UnsubscribeContent, now: float) -> None:
        """Detach a reader, and end its subscription if that has no name."""
        self._leave(request, command.subscription, now)

    @on_command(JoinGroups)
    def join_groups(self, request: int, command: JoinGroups, now: float) -> None:
        """Open a subscription whose events come from groups."""
        predicate = read_predicate(command.predicate, self._config.attributes).text
        number, _ = self._inbox.open(command.subscription, Wanted(predicate, Via.FAST, command.via))
        self.fast.admit_subscription(request, replace(command, subscription=number))
        self.fast.begin_subscription(number, now)

    @on_command(LeaveGroups)
    def leave_groups(self, request: int, command: LeaveGroups, now: float) -> None:
        """Detach a reader of groups, and end its subscription."""
        self._leave(request, command.subscription, now)

    def _leave(self, request: int, reader: int, now: float) -> None:
        if reader not in self.own_subscriptions:
            raise Refused(Reason.UNKNOWN, f"there is no subscription {reader}")
        self._out.reply(request, Ended())
        self._close(reader, now)

    def _close(self, reader: int, now: float) -> None:
        ended = self._inbox.close(reader)
        if ended is not None:
            self._end(ended, now)

    @on_command(ForgetContent)
    def forget(self, request: int, command: ForgetContent, now: float) -> None:
        """End a kept subscription for good."""
        number = self._inbox.find(command.name)
        if number is None:
            raise Refused(Reason.UNKNOWN, f"there is no kept subscription {command.name[:80]!r} here")
        reader = self._inbox.forget(number)
        self._end(number, now)
        if reader is not None:
            self._out.deliver(reader, (NoMore(None),))
        self._out.committed.reply(request, Ended())

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """Detach a reader."""
        self._out.reply(request, Done())
        self._close(command.subscription, now)

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Hand a reader more items, now that it has handled some."""
        try:
            number = self._inbox.consume(command.subscription, command.items)
        except Refused as error:
            self._out.reply(request, declined(error))
            return
        self._out.committed.reply(request, Done())
        self._inbox.hand(number)

    @on_command(ListContent)
    def list_content(self, request: int, command: ListContent, now: float) -> None:
        """Report the state of content at this node."""
        scout = self.scout
        settled = scout.is_settled and self.fast.is_settled
        subscriptions = (
            each if each.via is Via.SCOUT else replace(each, groups=self.fast.memberships.groups(number))
            for number, each in self._inbox.status().items()
        )
        held = tuple(sorted(scout.elections.held))
        self._out.reply(request, ContentIs(tuple(subscriptions), held, scout.table.pairs(), settled))

    # Groups that subscriptions are in.

    @on_notice(GroupsSought)
    def handle_groups_sought(self, notice: GroupsSought, now: float) -> None:
        """Tell the reader of a subscription the result of a search for groups, if it is news."""
        number, found = notice.subscription, notice.result
        again = self.fast.looks_again(is_lacking=not found.joined)
        told = InGroups(len(found.joined), len(found.refused), found.unanswered, again)
        reader = self._inbox.reader(number)
        if reader is not None and self._in_groups.get(number) != told:
            self._in_groups[number] = told
            self._out.deliver(reader, (told,))

    def _tell_groups(self, number: int, reader: int) -> None:
        """Tell a returning reader in how many groups the subscription is."""
        groups = self.fast.memberships.groups(number)
        told = InGroups(groups, 0, 0, self.fast.looks_again(is_lacking=not groups))
        self._in_groups[number] = told
        self._out.deliver(reader, (told,))

    # Links and lookups.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Greet a peer that takes part; treat one that does not as unreachable."""
        if self._speaking.meet(event):
            self.scout.handle_link_up(event, now)
            self.fast.handle_link_up(event, now)
        else:
            self._lose_link(DialFailed(event.peer, Reason.UNSUPPORTED), now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Go on without a peer whose link is down."""
        self._lose_link(event, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Go on without a peer that could not be reached."""
        self._lose_link(event, now)

    def _lose_link(self, event: LinkDown | DialFailed, now: float) -> None:
        self.scout.handle_link_loss(event, now)
        self.fast.handle_link_loss(event, now)

    @on_notice(Locate)
    def seek_nodes(self, notice: Locate, now: float) -> None:
        """Have the hash table look up the nodes nearest to a key."""
        self._out.notify(SeekNodes(notice.key))

    @on_notice(NodesFound)
    def handle_nodes_found(self, notice: NodesFound, now: float) -> None:
        """Continue what waited for a lookup."""
        # Both may have asked for it; who did not takes no notice.
        found = Located(notice.key, self._speaking.filter(notice.contacts))
        self.scout.handle_nodes_found(found, now)
        self.fast.handle_nodes_found(found, now)
