"""What the control API can be asked about content, by a program."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from linnet.content.commands import Via
from linnet.node.caller import ANSWER_SECONDS, Caller
from linnet.node.content_types import (
    CloseGroupRequest,
    ContentItemView,
    ContentPublishReply,
    ContentPublishRequest,
    ContentQuery,
    ContentReply,
    ForgetRequest,
    GroupRequest,
    GroupsFoundReply,
    GroupsQuery,
    GroupsReply,
    OwnGroupView,
)
from linnet.node.control_types import DoneReply

_ITEM: msgspec.json.Decoder[ContentItemView] = msgspec.json.Decoder(ContentItemView)
SEARCH_SECONDS = 120.0
"""Boards that do not answer are tried for a minute or so."""
OUTCOME_SECONDS = 600.0
"""A branch that does not answer is given up after a minute or so; a way that is gone is tried again."""


class ContentCalls(Caller):
    """The calls about content."""

    def content(self) -> ContentReply:
        """Subscriptions, and what the node carries for others."""
        return self._get("/v1/content", ContentReply)

    def publish_content(
        self, attributes: str, body: bytes = b"", via: Via = Via.SCOUT, confirm: float = 0.0
    ) -> ContentPublishReply:
        """Say something with attributes; returns when all who live have answered.

        Those who say nothing are waited for `confirm` seconds.
        """
        request = ContentPublishRequest(attributes, body=body, via=via, confirm=confirm)
        limit = ANSWER_SECONDS + OUTCOME_SECONDS + confirm
        return self._post("/v1/content/publish", request, ContentPublishReply, limit)

    def subscribe_content(
        self,
        predicate: str,
        name: str | None = None,
        manual: bool = False,
        via: Via = Via.SCOUT,
        at: str | None = None,
        group: str | None = None,
    ) -> Iterator[ContentItemView]:
        """What a predicate accepts, item by item; the first is `SubscribedView`. Closing it ends it.

        With `manual`, call `consumed` with the number in the first item, by a client of its own. `at` is the
        address of a publisher, and `group` the predicate of its group.
        """
        query = ContentQuery(predicate, name, via, at, group, "manual" if manual else "auto")
        return self._lines_of("/v1/content/subscribe", query, _ITEM)

    def content_groups(self) -> GroupsReply:
        """Groups of ours, and those that the node is in."""
        return self._get("/v1/content/groups", GroupsReply)

    def find_content_groups(self, predicate: str) -> GroupsFoundReply:
        """Groups of anybody that carry what a predicate accepts."""
        limit = ANSWER_SECONDS + SEARCH_SECONDS
        return self._get("/v1/content/groups/find", GroupsFoundReply, GroupsQuery(predicate), limit)

    def open_content_group(self, predicate: str, listed: bool = True) -> OwnGroupView:
        """Serve those who want events of a predicate."""
        return self._post("/v1/content/groups", GroupRequest(predicate, listed), OwnGroupView)

    def close_content_group(self, predicate: str) -> None:
        """Serve them no longer."""
        self._post("/v1/content/groups/close", CloseGroupRequest(predicate), DoneReply)

    def forget_content(self, name: str) -> None:
        """End a kept subscription, with what waits in it."""
        self._post("/v1/content/forget", ForgetRequest(name), DoneReply)
