from __future__ import annotations

from linnet.groups import labels as group_labels
from linnet.places.sealed.epoch_keys import LABELS
from linnet.streams.sealed.stream_keys import LABELS as STREAM_LABELS


def test_no_label_is_used_twice_nor_by_groups_nor_by_streams() -> None:
    every = (*LABELS, *group_labels.ALL, *STREAM_LABELS)
    assert len(set(every)) == len(every)
