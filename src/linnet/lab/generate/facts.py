"""Published facts about WhatsApp chats. Numbers only; what is made of them is in the other modules.

Unless it says otherwise, a constant is one of Poignée, Seufert, Loh, Seufert, Hoßfeld, "Modeling Network
Load of Mobile Instant Messaging: A Modular Source Traffic Generator", IEEE TNSM 2025 (their parameters as
published beside it, github.com/lsinfo3/mim-stm at 2c886528), fitted on the chats of Seufert, Poignée,
Seufert, Hoßfeld, "Share and Multiply: Modeling Communication and Generated Traffic in Private WhatsApp
Groups", IEEE Access 11, 2023. The marks are of that data set, as Schichtholz 2024, section 6.2, gives them.
"""

from __future__ import annotations

from typing import NamedTuple

MODEL = "Poignée et al. 2025"
DATA = "Seufert et al. 2023, after Schichtholz 2024, section 6.2"

DAY = 86_400


class Pauses(NamedTuple):
    """One part of the mixture of times between messages.

    A time is (`shift` - ln(1 - u)) / `rate`, with u uniform, drawn until it is above `least` and at most
    `most`.
    """

    share: float
    rate: float
    shift: float
    least: float
    most: float
    unit: int
    """Seconds in one unit of the times."""


PAUSES = (
    Pauses(0.7473, 0.0480334, -0.08860522, 0, 100, 1),
    Pauses(0.2019, 0.00126091, -0.12928196, 100, 3_600, 1),
    Pauses(0.0465, 4.75841878e-05, -0.0972950955, 3_600, 86_400, 1),
    Pauses(0.0043, 0.6303, 0.5343, 1, float("inf"), DAY),
)
"""Times between the messages of a chat: up to 100 s, up to an hour, up to a day, longer."""

KINDS = ("text", "image", "audio", "video")

NEXT_KIND = (
    (0.9526811337524821, 0.031908507659135985, 0.008941875382526561, 0.004074231053029658),
    (0.6638926827198749, 0.3053128319602113, 0.009854985909793305, 0.017154643078012587),
    (0.5776086479792573, 0.03770591194644032, 0.3771003986016692, 0.006016434256524038),
    (0.6668320580785, 0.14622124148016608, 0.0142845950957094, 0.1665186848771316),
)
"""How often a message of the row's kind is followed by one of the column's; rows sum to slightly below 1."""


class Participation(NamedTuple):
    """Who writes how much in groups of up to so many members."""

    members: int
    ranked: tuple[float, float, float]
    """Shares of the one who writes most, of the second, of the third."""
    others: float
    """Share of all others together."""


PARTICIPATION = (
    Participation(2, (0.5504449314953347, 0.44955506850466537, 0.0), 0.0),
    Participation(3, (0.49933300232976713, 0.31253306098350225, 0.1881339366867306), 0.0),
    Participation(4, (0.41534150638988354, 0.2883037448251664, 0.18898707003802667), 0.10736767874692332),
    Participation(5, (0.36637339321082907, 0.2627983018595241, 0.19184990010702116), 0.17897840482262561),
    Participation(6, (0.35433097176899536, 0.2452045452633708, 0.1751401536288871), 0.2253243293387467),
    Participation(7, (0.3336614951841645, 0.22085774188250346, 0.16694227236054196), 0.2785384905727901),
    Participation(8, (0.3264768854808429, 0.20691182633260274, 0.15185910644384612), 0.31475218174270814),
    Participation(9, (0.2965216175797816, 0.20203959570071775, 0.15227730083696317), 0.34916148588253737),
    Participation(10, (0.2732466785753908, 0.1968008078745602, 0.14946696835619014), 0.3804855451938589),
    Participation(30, (0.22635174898110505, 0.15051699597420728, 0.11513388885517198), 0.5079973661895159),
    Participation(252, (0.13131430067700217, 0.08133802324126005, 0.06412765283331638), 0.7232200232484215),
)

# fmt: off
CHARS = (
    (0, 51_540), (1, 60_594), (2, 89_045), (3, 117_013), (4, 148_708), (5, 174_759), (6, 200_164),
    (7, 223_022), (8, 247_016), (9, 269_714), (10, 292_505), (11, 314_253), (12, 336_127), (13, 358_210),
    (14, 380_795), (15, 403_526), (16, 423_093), (17, 442_558), (18, 461_901), (19, 481_317), (20, 501_881),
    (21, 519_885), (22, 537_275), (23, 556_161), (24, 573_613), (25, 589_919), (26, 605_343), (27, 620_185),
    (28, 635_783), (29, 649_519), (30, 662_645), (31, 675_307), (32, 687_478), (33, 699_045), (34, 710_175),
    (35, 720_839), (36, 731_019), (37, 740_727), (38, 750_012), (39, 758_904), (40, 767_442), (41, 775_668),
    (42, 783_462), (43, 791_203), (44, 798_313), (45, 805_128), (46, 811_662), (47, 817_895), (48, 823_964),
    (49, 829_704), (50, 835_272), (54, 855_292), (59, 876_165), (64, 893_561), (70, 910_479), (76, 924_129),
    (83, 936_958), (91, 948_492), (99, 957_504), (108, 965_387), (118, 972_094), (129, 977_679),
    (140, 981_894), (153, 985_632), (167, 988_607), (182, 990_949), (198, 992_787), (216, 994_312),
    (235, 995_477), (257, 996_471), (280, 997_224), (305, 997_807), (332, 998_263), (362, 998_635),
    (395, 998_929), (431, 999_161), (469, 999_337), (512, 999_482), (558, 999_592), (608, 999_679),
    (663, 999_746), (723, 999_800), (788, 999_841), (859, 999_874), (936, 999_898), (1020, 999_917),
    (1112, 999_932), (1212, 999_943), (1321, 999_954), (1440, 999_961), (1570, 999_967), (1711, 999_972),
    (1865, 999_976), (2033, 999_981), (2216, 999_984), (2416, 999_986), (2633, 999_988), (2870, 999_989),
    (4000, 999_992), (8000, 999_995), (16000, 999_997), (65536, 1_000_000),
)
# fmt: on
"""Characters of a message, and how many of a million messages have at most so many.

102 points computed from the published distribution function of 2,766 points: every number up to 49, then
steps of 9 %, then the tail; straight lines between them are nowhere off by more than 0.0005. Messages of
no character are those of emojis alone. The longest one published has 83,161; 65,536 is WhatsApp's limit.
"""

CHATS = 5_956
MESSAGES = 76_000_000
USERS = 117_000
"""More than that."""
DYADS = 0.42
"""Share of chats with two members."""
UP_TO_30 = 0.83
"""Share of chats with at most 30 members."""
LARGEST = 252
IN_SECONDS = 1_598
"""Chats whose times are in seconds; all others are in minutes."""
WITHIN_60_S = 0.69
"""Share of messages that are followed by another within a minute."""
WITHIN_120_S = 0.76
TEXTS = 0.89
"""Share of texts among the messages, counted in chats from 2021."""
