from __future__ import annotations

from linnet.groups import labels as group_labels
from linnet.streams.sealed import labels


def test_no_label_is_used_twice_nor_by_groups() -> None:
    assert len({*labels.ALL, *group_labels.ALL}) == len(labels.ALL) + len(group_labels.ALL)
