"""Names for people: nodes by the folders of their traces, all else by the first digits of its id."""

from __future__ import annotations

from collections import Counter

from linnet.lab.audit.sources import Sources

_DIGITS = 8


def node_labels(sources: Sources) -> dict[str, str]:
    """The name of each node whose trace lay in a folder of its own."""
    found = {file.node: file.label for file in sources.lines if file.node is not None}
    often = Counter(found.values())
    return {node: label for node, label in found.items() if often[label] == 1 and label}


def short(name: str) -> str:
    """The beginning of an id in hex."""
    return name[:_DIGITS]
