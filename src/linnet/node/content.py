"""Content for programs: subscribe by predicates, publish events with attributes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import ClassVar, TypeAlias

from linnet.api.content import ContentSaid, SayContent
from linnet.api.errors import ApiError
from linnet.content.commands import (
    ContentIs,
    ContentItem,
    ForgetContent,
    GroupAt,
    InGroups,
    ListContent,
    Match,
    Outcome,
    Overflow,
    PublishContent,
    Standing,
    SubscribeContent,
    Via,
)
from linnet.content.fast.commands import (
    CloseGroup,
    ExamineGroups,
    GroupOpened,
    GroupOutcome,
    GroupsFound,
    GroupsStatus,
    OpenGroup,
    PublishToGroup,
    SearchGroups,
)
from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes, read_predicate
from linnet.core.errors import BadText, Refused
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.machine.commands import Ask
from linnet.node.answers import answers
from linnet.node.background import Spawn
from linnet.node.subscription import Reader

OVERFLOWS_KEPT = 1024


class ContentItems(Reader[ContentItem | InGroups, Standing]):
    """One subscription to content; made by `NodeContent.subscribe`. For one reader only."""

    TELL_ITEMS: ClassVar[int] = 64

    def __init__(
        self,
        command: SubscribeContent,
        ask: Ask,
        spawn: Spawn,
        register: Callable[[ContentItems, bool], None],
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self.overflows: deque[Overflow] = deque(maxlen=OVERFLOWS_KEPT)
        """The latest losses, since more waited than could be read."""
        self.in_groups: InGroups | None = None
        """How many groups it is in, by `fast` or `auto`, once they were looked for; see docs/content.md."""

    @property
    def predicate(self) -> str:
        """The predicate in its canonical text; empty before it is open."""
        return "" if self._state is None else self._state.predicate

    @property
    def attribute(self) -> str:
        """The attribute whose rendezvous node it goes to; empty before it is open."""
        return "" if self._state is None else self._state.attribute

    async def __aiter__(self) -> AsyncIterator[Match]:
        """Yield the matches. Raises `Refused` if the subscription was not ended by us."""
        try:
            while True:
                item = (await self.take(1))[0]
                if isinstance(item, Match):
                    yield item
                self.handled(1)
                if isinstance(item, Ended):
                    if item.reason is not None:
                        raise Refused(item.reason, f"the subscription to {self.predicate} ended")
                    return
        finally:
            if not self._within_block:
                await self.close()

    def deliver(self, items: Iterable[ContentItem | InGroups | Ended]) -> None:
        """See `Reader.deliver`; the state of groups is known at once, even if nobody reads."""
        handed = tuple(items)
        for item in handed:
            if isinstance(item, InGroups):
                self.in_groups = item
        super().deliver(handed)

    def _noted(self, item: ContentItem | InGroups | Ended) -> ContentItem | InGroups | Ended:
        if isinstance(item, InGroups):
            return item
        if isinstance(item, Overflow):
            self.overflows.append(item)
        return super()._noted(item)


Reading: TypeAlias = Callable[[Callable[[int], SubscribeContent]], ContentItems]
"""Makes the reader of a subscription, under a number of the node's."""
_LOOK = 0.05
"""Seconds between two checks."""


class NodeContent:
    """Content at one node. Each call raises `Refused` with the reason if declined; see docs/content.md."""

    def __init__(self, ask: Ask, reading: Reading) -> None:
        self._ask = ask
        self._reading = reading

    def subscribe(
        self, predicate: str, name: str | None = None, via: Via = Via.SCOUT, at: GroupAt | None = None
    ) -> ContentItems:
        """Subscribe to events that a predicate accepts, such as ``stock/apple/price[10,20]``.

        Read them by ``async for``. With a `name` it is kept over restarts until `forget`, and collects events
        while nobody reads. By ``fast`` they come from groups that publishers serve, by ``scout`` from
        anybody, by ``auto`` from both; `at` names the only group to be in, which need not be advertised.
        """
        return self._reading(lambda number: SubscribeContent(number, predicate, name, via, at))

    async def publish(self, attributes: str, body: bytes | str = b"", confirm: float = 0.0) -> Outcome:
        """Publish an event with attributes, such as ``stock/apple/price=12.5``.

        Returns when all live nodes have answered, with the outcome at the rendezvous of each attribute: at
        how many nodes it was delivered, how many branches did not answer, and which are silent so far. With
        `confirm`, waits up to this many seconds for the silent ones as well.
        """
        raw = body.encode() if isinstance(body, str) else body
        return await self._ask(PublishContent(attributes, raw, confirm))

    async def publish_to_group(
        self, group: str, attributes: str, body: bytes | str = b"", confirm: float = 0.0
    ) -> GroupOutcome:
        """Publish an event in a group of ours, named by the predicate that it was opened with.

        Returns when every live member has given a receipt, with the members that are silent so far. With
        `confirm`, waits up to this many seconds for these as well.
        """
        raw = body.encode() if isinstance(body, str) else body
        return await self._ask(PublishToGroup(group, attributes, raw, confirm))

    async def group_for(self, attributes: str) -> str | None:
        """Return our group that carries an event with these attributes; the narrowest, if several do."""
        said = read_attributes(attributes, MOST_ATTRIBUTES)
        ours = [read_predicate(each.predicate, MOST_ATTRIBUTES) for each in (await self.groups()).groups]
        fitting = [predicate for predicate in ours if predicate.covers(said)]
        return max(fitting, key=lambda each: (each.size, each.text)).text if fitting else None

    async def open_group(self, predicate: str, listed: bool = True) -> GroupOpened:
        """Open a group for subscribers of a predicate; kept over restarts. `listed`: others can find it."""
        return await self._ask(OpenGroup(predicate, listed))

    async def close_group(self, predicate: str) -> None:
        """Close a group of ours, and tell its members."""
        await self._ask(CloseGroup(predicate))

    async def find_groups(self, predicate: str) -> GroupsFound:
        """Find advertised groups of anybody that carry all that a predicate accepts."""
        return await self._ask(SearchGroups(predicate))

    async def groups(self) -> GroupsStatus:
        """Return our groups, and those that we are in."""
        return await self._ask(ExamineGroups())

    async def forget(self, name: str) -> None:
        """End a kept subscription, and drop the events that wait in it."""
        await self._ask(ForgetContent(name))

    async def status(self) -> ContentIs:
        """Return the state of content at this node."""
        return await self._ask(ListContent())

    async def settled(self, patience: float = 30.0) -> None:
        """Wait until all subscriptions of this node are in place, so that no later event is missed.

        Raises `Refused` with ``timeout`` if that takes longer than `patience` seconds.
        """
        try:
            async with asyncio.timeout(patience):
                while not (await self.status()).settled:  # noqa: ASYNC110 - the machine is asked, it does not tell
                    await asyncio.sleep(_LOOK)
        except TimeoutError as error:
            raise Refused(Reason.TIMEOUT, "subscriptions do not stand all the way yet") from error


class ContentAnswers:
    """The node's own answers about content: chooses whether a group of ours carries an event."""

    def __init__(self, content: NodeContent) -> None:
        self._content = content

    @answers(SayContent)
    async def say_content(self, command: SayContent) -> ContentSaid:
        """Publish the event by the requested way."""
        if command.text is not None and command.body is not None:
            raise BadText("give a text or a body, one of them")
        attributes, body = command.attributes, command.body or (command.text or "").encode()
        content = self._content
        group = None if command.via is Via.SCOUT else await content.group_for(attributes)
        if group is not None:
            return _said_in_group(
                group, await content.publish_to_group(group, attributes, body, command.confirm)
            )
        if command.via is Via.FAST:
            detail = "no group of this node carries it"
            raise ApiError(409, "unknown", detail, "open one with: linnet content advertise")
        return _said(await content.publish(attributes, body, command.confirm))


def _said(outcome: Outcome) -> ContentSaid:
    fates = outcome.fates
    return ContentSaid(
        outcome.event,
        sum(fate.delivered for fate in fates),
        sum(fate.missed for fate in fates),
        fates,
        matches=sum(fate.matches for fate in fates),
        settled=all(fate.settled for fate in fates),
        silent=tuple(dict.fromkeys(peer for fate in fates for peer in fate.silent)),
        more_silent=sum(fate.more_silent for fate in fates),
    )


def _said_in_group(group: str, outcome: GroupOutcome) -> ContentSaid:
    return ContentSaid(
        outcome.event,
        outcome.reached,
        len(outcome.missed),
        (),
        group,
        outcome.wanted,
        outcome.taken_back,
        settled=not outcome.silent,
        silent=outcome.silent,
    )
