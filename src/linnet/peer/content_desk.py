"""Where the application speaks to content: by rendezvous, by groups of publishers, or by both.

Whatever way an event comes, it waits in the inbox of its subscription, and that it arrived is said when
it is durable. Subscriptions with names and groups of this node are there again after a restart.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from msgspec.structs import replace

from linnet.content.commands import (
    ContentCommand,
    ContentIs,
    Ended,
    ForgetContent,
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
from linnet.content.config import ContentConfig
from linnet.content.effects import ContentEffect, ContentPromise
from linnet.content.fast.commands import (
    CloseGroup,
    FastCommand,
    FastResult,
    GroupOutcome,
    GroupsJoined,
    JoinGroups,
    LeaveGroups,
    OpenGroup,
)
from linnet.content.fast.delivery import FastDelivery
from linnet.content.fast.effects import FastEffect
from linnet.content.fast.messages import Conveyed, FastMessage
from linnet.content.inbox import Inbox, Wanted
from linnet.content.messages import ContentMessage, Held, Reached, Settled, Taken
from linnet.content.predicates import read_predicate
from linnet.content.scout import Scout
from linnet.core.effects import AfterCommit, Deliver, Reply, Send
from linnet.core.errors import BadText, Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.items import Ended as NoMore
from linnet.trace.records import Kind, Record

GROUPS = "content_groups"
"""Cells with the groups of this node: the predicate, and whether it is advertised."""
_OURS = 0
"""The request of what this node asks itself; for groups, less than that by the number of a subscription."""
_ARRIVED = (Reached, Settled, Outcome, Conveyed, GroupOutcome)
"""What says of an event that it arrived, perhaps here."""

DeskPromise: TypeAlias = ContentPromise | Send[FastMessage] | Reply[FastResult]
"""What may have to wait until something is durable."""
DeskEffect: TypeAlias = ContentEffect | FastEffect | AfterCommit[DeskPromise]


class ContentDesk:
    """What the application asks of content, and what it is handed."""

    def __init__(self, config: ContentConfig, cells: Cells, scout: Scout, fast: FastDelivery) -> None:
        self._config = config
        self._cells = cells
        self._scout = scout
        self._fast = fast
        self._inbox = Inbox(config, cells)
        self._in_groups: dict[int, InGroups] = {}
        """What was told of the groups of each subscription."""

    def start(self, now: float) -> list[DeskEffect]:
        """What is kept is told again."""
        effects: list[DeskEffect] = []
        for number, wanted in self._inbox.kept:
            effects += self._begin(number, wanted, now, returns=True)
        for text, listed in self._cells.scan(GROUPS):
            effects += self._fast.ask(_OURS, OpenGroup(text.decode(), listed == b"1"), now)
        return self.handed(effects)

    def ask(self, request: int, command: ContentCommand | FastCommand, now: float) -> list[DeskEffect]:
        """A command of the application."""
        try:
            if isinstance(command, FastCommand):
                return self.handed(self._ask_groups(request, command, now))
            return self.handed(self._ask(request, command, now))
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def _ask(self, request: int, command: ContentCommand, now: float) -> list[DeskEffect]:
        match command:
            case SubscribeContent():
                return self._subscribe(request, command, now)
            case UnsubscribeContent(reader):
                if not self._inbox.reads(reader):
                    raise Refused(Reason.UNKNOWN, f"there is no subscription {reader}")
                return [Reply(request, Ended()), *self._close(reader, now)]
            case ForgetContent(name):
                return self._forget(request, name, now)
            case ListContent():
                return [Reply(request, self._status())]
            case PublishContent():
                return [*self._scout.ask(request, command, now)]
            case _:
                assert_never(command)

    def _ask_groups(self, request: int, command: FastCommand, now: float) -> list[DeskEffect]:
        match command:
            case JoinGroups(subscription=reader):
                predicate = read_predicate(command.predicate, self._config.attributes).text
                number, _ = self._inbox.open(reader, Wanted(predicate, Via.FAST, command.via))
                return [*self._fast.ask(request, replace(command, subscription=number), now)]
            case LeaveGroups(reader):
                if not self._inbox.reads(reader):
                    raise Refused(Reason.UNKNOWN, f"there is no subscription {reader}")
                return [Reply(request, Ended()), *self._close(reader, now)]
            case OpenGroup() | CloseGroup():
                return self._keep_group(request, command, now)
            case _:
                return [*self._fast.ask(request, command, now)]

    # Subscriptions.

    def _subscribe(self, request: int, command: SubscribeContent, now: float) -> list[DeskEffect]:
        wanted = self._wanted(command)
        number, is_there = self._inbox.open(command.subscription, wanted, command.name)
        if not is_there:
            begun = self._begin(number, wanted, now)
            refusals = [each.result for each in begun if isinstance(each, Reply)]
            declined = next((each for each in refusals if isinstance(each, Declined)), None)
            if declined is not None:
                self._inbox.forget(number)
                ended = self._end(number, wanted, now)
                return [*_without_replies(begun), *ended, Reply(request, declined)]
        standing = Reply(request, Standing(wanted.predicate, self._inbox.attribute(number), is_there))
        told: DeskEffect = standing if command.name is None else AfterCommit((standing,))
        if not is_there:
            return [told, *_without_replies(begun)]
        resumed = [] if wanted.via is Via.SCOUT else self._tell_groups(number, command.subscription)
        return [told, *resumed, *self._inbox.hand(number)]

    def _tell_groups(self, number: int, reader: int) -> list[DeskEffect]:
        """Who reads on is told in how many groups the subscription is."""
        groups = self._fast.memberships.groups(number)
        self._in_groups[number] = InGroups(groups, 0, 0, self._fast.looks_again(is_lacking=not groups))
        return [Deliver(reader, (self._in_groups[number],))]

    def _wanted(self, command: SubscribeContent) -> Wanted:
        predicate = read_predicate(command.predicate, self._config.attributes).text
        if command.at is None:
            return Wanted(predicate, command.via)
        if command.via is Via.SCOUT:
            raise Refused(Reason.MALFORMED, "a group is joined by fast or auto: scout knows no groups")
        group = read_predicate(command.at.group, self._config.attributes).text
        return Wanted(predicate, command.via, replace(command.at, group=group))

    def _begin(self, number: int, wanted: Wanted, now: float, returns: bool = False) -> list[DeskEffect]:
        effects: list[DeskEffect] = []
        if wanted.via is not Via.FAST:
            asked = SubscribeContent(number, wanted.predicate, returns=returns)
            effects += self._scout.ask(_OURS, asked, now)
            for effect in effects:
                if isinstance(effect, Reply) and isinstance(effect.result, Standing):
                    self._inbox.stands(number, effect.result.attribute)
        if wanted.via is not Via.SCOUT:
            effects += self._fast.ask(_OURS - number, JoinGroups(number, wanted.predicate, wanted.at), now)
        return effects

    def _end(self, number: int, wanted: Wanted, now: float) -> list[DeskEffect]:
        effects: list[DeskEffect] = []
        if wanted.via is not Via.FAST:
            effects += self._scout.ask(_OURS, UnsubscribeContent(number), now)
        if wanted.via is not Via.SCOUT:
            effects += self._fast.ask(_OURS, LeaveGroups(number), now)
        self._in_groups.pop(number, None)
        return _without_replies(effects)

    def _close(self, reader: int, now: float) -> list[DeskEffect]:
        ended = self._inbox.close(reader)
        return [] if ended is None else self._end(*ended, now)

    def _forget(self, request: int, name: str, now: float) -> list[DeskEffect]:
        number = self._inbox.find(name)
        if number is None:
            raise Refused(Reason.UNKNOWN, f"there is no kept subscription {name[:80]!r} here")
        reader, wanted = self._inbox.forget(number)
        effects = self._end(number, wanted, now)
        if reader is not None:
            effects.append(Deliver(reader, (NoMore(None),)))
        return [*effects, AfterCommit((Reply(request, Ended()),))]

    def reads(self, reader: int) -> bool:
        """Whether a reader is one of content."""
        return self._inbox.reads(reader)

    def reader_says(self, request: int, command: Unsubscribe | Consumed, now: float) -> list[DeskEffect]:
        """A reader has handled something, or reads no more."""
        done = Reply(request, Done())
        if isinstance(command, Unsubscribe):
            return self.handed([done, *self._close(command.subscription, now)])
        try:
            handed = self._inbox.consumed(command.subscription, command.items)
        except Refused as error:
            return [Reply(request, Declined(error.reason, error.detail))]
        return [AfterCommit((done,)), *handed]

    # Groups.

    def _keep_group(self, request: int, command: OpenGroup | CloseGroup, now: float) -> list[DeskEffect]:
        text = command.predicate if isinstance(command, OpenGroup) else command.group
        key = read_predicate(text, self._config.attributes).text.encode()
        effects: list[DeskEffect] = []
        for effect in self._fast.ask(request, command, now):
            if isinstance(effect, Reply) and not isinstance(effect.result, Declined):
                if isinstance(command, OpenGroup):
                    self._cells.put(GROUPS, key, b"1" if command.listed else b"0")
                else:
                    self._cells.delete(GROUPS, key)
                effects.append(AfterCommit((effect,)))
            else:
                effects.append(effect)
        return effects

    # Everything.

    def _status(self) -> ContentIs:
        scout = self._scout
        settled = scout.is_settled and self._fast.is_settled
        subscriptions = (
            each if each.via is Via.SCOUT else replace(each, groups=self._fast.memberships.groups(number))
            for number, each in self._inbox.status().items()
        )
        return ContentIs(
            tuple(subscriptions), tuple(sorted(scout.elections.held)), scout.table.pairs(), settled
        )

    def handed(self, effects: list[DeskEffect]) -> list[DeskEffect]:
        """What machines hand over goes into the inbox; that it arrived is said when it is durable."""
        out: list[DeskEffect] = []
        old: dict[EventId, bool] = {}
        is_keeping = self._inbox.is_keeping
        for effect in effects:
            if isinstance(effect, Deliver) and isinstance(effect.items[0], Match):
                match = effect.items[0]
                is_old = old.setdefault(match.event, self._inbox.is_old(match.event))
                out += self._inbox.take(effect.subscription, match, is_old)
            elif isinstance(effect, Reply) and effect.request <= _OURS:
                out += self._joined(effect) if effect.request < _OURS else _own_answer(effect)
            elif is_keeping and isinstance(effect, Send | Reply) and _tells_arrival(effect):
                out.append(AfterCommit((effect,)))
            else:
                out.append(effect)
        for event in old:
            self._inbox.taken(event)
        return out

    def _joined(self, reply: Reply[object]) -> list[DeskEffect]:
        """Groups were looked for, for a subscription: who reads it is told if that is news."""
        number, found = _OURS - reply.request, reply.result
        if not isinstance(found, GroupsJoined):
            return _own_answer(reply)
        again = self._fast.looks_again(is_lacking=not found.joined)
        told = InGroups(len(found.joined), len(found.refused), found.unanswered, again)
        reader = self._inbox.reader(number)
        if reader is None or self._in_groups.get(number) == told:
            return []
        self._in_groups[number] = told
        return [Deliver(reader, (told,))]


def _tells_arrival(effect: Send[ContentMessage | FastMessage] | Reply[object]) -> bool:
    told = effect.message if isinstance(effect, Send) else effect.result
    return isinstance(told, _ARRIVED) or (isinstance(told, Held | Taken) and told.so_far is not None)


def _own_answer(reply: Reply[object]) -> list[DeskEffect]:
    """An answer to what this node asked itself: only a refusal is worth a word."""
    if not isinstance(reply.result, Declined):
        return []
    return [Record(Kind.DROPPED, reason=reply.result.reason, note=f"content: {reply.result.detail}"[:200])]


def _without_replies(effects: list[DeskEffect]) -> list[DeskEffect]:
    """Without answers to what this node asked itself, but in which groups a subscription is."""
    return [
        effect
        for effect in effects
        if not isinstance(effect, Reply) or isinstance(effect.result, GroupsJoined)
    ]
