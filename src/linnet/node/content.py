"""Content, as a program uses it: subscribe to what is said, say things with attributes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from linnet.content.commands import (
    ContentIs,
    Ended,
    ForgetContent,
    GroupAt,
    ListContent,
    Outcome,
    PublishContent,
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
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.content_items import ContentItems

Reading: TypeAlias = Callable[[Callable[[int], SubscribeContent]], ContentItems]
"""Make the reader of a subscription, under a number of the node's."""
_LOOK = 0.05
"""Seconds between two looks."""


class NodeContent:
    """Content at one node. Everything raises `Refused` with why it cannot be; see docs/content.md."""

    def __init__(self, ask: Ask, reading: Reading) -> None:
        self._ask = ask
        self._reading = reading

    def subscribe(
        self, predicate: str, name: str | None = None, via: Via = Via.SCOUT, at: GroupAt | None = None
    ) -> ContentItems:
        """What is said that a predicate accepts, such as ``stock/apple/price[10,20]``; read by ``async for``.

        With a `name` it is kept over restarts until `forget`, and takes what comes while nobody reads. By
        ``fast`` it comes from groups that publishers serve, by ``scout`` from anybody, by ``auto`` from both;
        `at` names the one group to be in, which need not be advertised.
        """
        return self._reading(lambda number: SubscribeContent(number, predicate, name, via, at))

    async def publish(self, attributes: str, body: bytes | str = b"", confirm: float = 0.0) -> Outcome:
        """Say something with attributes, such as ``stock/apple/price=12.5``.

        Returns when all who live have answered, with what became of it at the rendezvous of each attribute:
        at how many nodes it was handed over, how many branches did not answer, and who is silent so far. With
        `confirm`, waits so many seconds for those as well.
        """
        raw = body.encode() if isinstance(body, str) else body
        return expected(await self._ask(PublishContent(attributes, raw, confirm)), Outcome)

    async def publish_to_group(
        self, group: str, attributes: str, body: bytes | str = b"", confirm: float = 0.0
    ) -> GroupOutcome:
        """Say something in a group of ours, by the predicate that it was opened with.

        Returns when every member who lives has given a receipt, with those who are silent so far. With
        `confirm`, waits so many seconds for these as well.
        """
        raw = body.encode() if isinstance(body, str) else body
        return expected(await self._ask(PublishToGroup(group, attributes, raw, confirm)), GroupOutcome)

    async def group_for(self, attributes: str) -> str | None:
        """The group of ours that carries an event with these attributes; the narrowest, if several do."""
        said = read_attributes(attributes, MOST_ATTRIBUTES)
        ours = [read_predicate(each.predicate, MOST_ATTRIBUTES) for each in (await self.groups()).groups]
        fitting = [predicate for predicate in ours if predicate.covers(said)]
        return max(fitting, key=lambda each: (each.size, each.text)).text if fitting else None

    async def open_group(self, predicate: str, listed: bool = True) -> GroupOpened:
        """Serve those who want events of a predicate; kept over restarts. `listed`: let it be found."""
        return expected(await self._ask(OpenGroup(predicate, listed)), GroupOpened)

    async def close_group(self, predicate: str) -> None:
        """Serve them no longer, and tell them."""
        expected(await self._ask(CloseGroup(predicate)), Ended)

    async def find_groups(self, predicate: str) -> GroupsFound:
        """Groups of anybody, that were advertised and carry all that a predicate accepts."""
        return expected(await self._ask(SearchGroups(predicate)), GroupsFound)

    async def groups(self) -> GroupsStatus:
        """Groups of ours, and those that we are in."""
        return expected(await self._ask(ExamineGroups()), GroupsStatus)

    async def forget(self, name: str) -> None:
        """End a kept subscription, with what waits in it."""
        expected(await self._ask(ForgetContent(name)), Ended)

    async def status(self) -> ContentIs:
        """How content stands at this node."""
        return expected(await self._ask(ListContent()), ContentIs)

    async def settled(self, patience: float = 30.0) -> None:
        """Wait until all subscriptions of this node stand, so that nothing said from now on is missed.

        `Refused` with ``timeout`` if that takes longer than so many seconds.
        """
        try:
            async with asyncio.timeout(patience):
                while not (await self.status()).settled:  # noqa: ASYNC110 - the machine is asked, it does not tell
                    await asyncio.sleep(_LOOK)
        except TimeoutError as error:
            raise Refused(Reason.TIMEOUT, "subscriptions do not stand all the way yet") from error
