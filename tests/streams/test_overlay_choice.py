from __future__ import annotations

import pytest

from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.overlay.config import Overlay
from linnet.store.memory import MemoryStore
from linnet.streams.options import StreamOptions
from linnet.streams.overlay_choice import SPACE, OverlayChoice

TEA, NEWS = TopicId(b"t" * 32), TopicId(b"n" * 32)


def test_what_the_user_chose_goes_before_the_stream_s_setting_and_that_before_the_node_s() -> None:
    cells = MemoryStore().cells
    options = {"tea": StreamOptions(overlay=Overlay.RING), "news": StreamOptions()}
    choice = OverlayChoice(cells, options, Overlay.TRACKER)
    assert [choice.of("tea", TEA), choice.of("news", NEWS)] == [Overlay.RING, Overlay.TRACKER]
    choice.choose(TEA, Overlay.TRACKER)
    choice.choose(NEWS, Overlay.RING)
    again = OverlayChoice(cells, options, Overlay.TRACKER)
    assert [again.of("tea", TEA), again.of("news", NEWS)] == [Overlay.TRACKER, Overlay.RING]
    again.choose(TEA, None)
    assert again.of("tea", TEA) is Overlay.RING


def test_a_damaged_choice_is_told() -> None:
    cells = MemoryStore().cells
    cells.put(SPACE, TEA, b"mesh")
    with pytest.raises(StoreError, match="damaged"):
        OverlayChoice(cells, {}, Overlay.TRACKER).of("tea", TEA)
