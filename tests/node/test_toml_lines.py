from __future__ import annotations

from linnet.node.config_file import key_lines, line_of

TEXT = '''\
# a comment with = and [brackets]
top = 1

[node]
listen = [ # "not the end ]
  "tls://a:1",
  "tls://b:2",
]
label = """
[fake]
key = "x"
"""
'quoted key' = 'it''s'
a.b . "c" = {inline = [1, "]"], x = 2}
[streams."a \\u0041.b"]
degree = 4 # degree
[[storage]]
stream = "a"
[[storage]]

stream = "b"
[storage.sub]
x = 1
'''.replace("'it''s'", "'its'")


def test_each_key_has_its_line() -> None:
    lines = key_lines(TEXT)
    assert lines == {
        ("top",): 2,
        ("node",): 4,
        ("node", "listen"): 5,
        ("node", "label"): 9,
        ("node", "quoted key"): 13,
        ("node", "a"): 14,
        ("node", "a", "b"): 14,
        ("node", "a", "b", "c"): 14,
        ("streams", "a A.b"): 15,
        ("streams", "a A.b", "degree"): 16,
        ("storage", 0): 17,
        ("storage", 0, "stream"): 18,
        ("storage", 1): 19,
        ("storage", 1, "stream"): 21,
        ("storage", 1, "sub"): 22,
        ("storage", 1, "sub", "x"): 23,
    }


def test_what_has_no_line_of_its_own_gets_the_one_around_it() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, ("node", "listen", 1)) == 5
    assert line_of(lines, ("node", "a", "b", "c", "inline", 0)) == 14
    assert line_of(lines, ("elsewhere",)) is None
