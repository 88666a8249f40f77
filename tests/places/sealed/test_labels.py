from __future__ import annotations

from linnet.groups import labels as group_labels
from linnet.places.sealed.epoch_keys import LABELS
from linnet.streams.sealed import labels as stream_labels


def test_no_label_is_used_twice_nor_by_groups_nor_by_streams() -> None:
    every = (*LABELS, *group_labels.ALL, *stream_labels.ALL)
    assert len(set(every)) == len(every)
