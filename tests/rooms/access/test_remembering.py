from __future__ import annotations

from linnet.rooms.access.remembering import Remembered


def test_the_one_unused_for_longest_is_forgotten() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    memory.put("c", 3)
    assert ("a" in memory, "b" in memory, "c" in memory) == (True, False, True)
    assert len(memory) == 2


def test_what_is_put_again_is_new() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.put("a", 3)
    memory.put("c", 4)
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (3, None, 4)
