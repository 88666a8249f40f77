"""Printing what a subscription to content hands over: matches to standard output, all else beside it."""

from __future__ import annotations

from typing import assert_never

from linnet.cli.item_printing import ItemPrinter
from linnet.cli.output import counted, plain, size_text
from linnet.node.content_types import ContentItemView, InGroupsView, MatchView, OverflowView
from linnet.node.control_types import EndedView, HeartbeatView, SubscribedView


class MatchPrinter(ItemPrinter[ContentItemView]):
    """Prints matches."""

    called = ("match", "matches")
    look = "linnet content list"

    def _print(self, item: ContentItemView) -> None:
        match item:
            case MatchView():
                self._shown(item, match_line(item))
            case OverflowView(_, count, reason):
                self._lost += count
                self._beside(item, f"lost: {count} that came while too much was unread: {reason}")
            case SubscribedView(number, resumed):
                self._beside(item, "resumed" if resumed else "subscribed")
                self._began(number)
            case InGroupsView():
                self._beside(item, groups_text(item))
            case EndedView(reason):
                self._ended(reason)
            case HeartbeatView():
                pass
            case _:
                assert_never(item)


def groups_text(item: InGroupsView) -> str:
    """In how many groups a subscription is, and what comes of a publisher that appears later."""
    found = f"in {counted(item.joined, 'group')}" if item.joined else "in no group: nobody serves one for it"
    refused = f"; {counted(item.refused, 'group')} did not take it" if item.refused else ""
    silent = f"; {counted(item.unanswered, 'board')} did not answer" if item.unanswered else ""
    others = "more" if item.joined else "one"
    again = f"who opens {others} later is found and joined: this node looks again every {item.look_again:g} s"
    return f"{found}{refused}{silent}; {again}"


def match_line(match: MatchView) -> str:
    """A match on one line: its attributes, and its body as far as that is text."""
    body = size_text(len(match.body)) if match.text is None else plain(match.text)
    return f"{plain(match.attributes)}\t{body}" if match.body else plain(match.attributes)
