"""A view for tests of what is told."""

from __future__ import annotations

from linnet.lab.report.parts import StageCost
from linnet.lab.studies.places.answers import JOBS
from linnet.lab.studies.places.figures import MEASURED
from linnet.lab.studies.places.findings import Finding
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.lab.studies.places.view import Compared, Scale, View

SCALE = Scale(
    rows=1000,
    taken=980,
    missing=20,
    last=1000,
    generation_faults=0,
    hashes=12,
    wrong_hashes=0,
    verdicts={"yes": 5, "no": 7},
    whole=900,
    messages=940,
    sampled=9,
    sampled_wrong=0,
    growth=((10, 3.5), (20, 7.0)),
    costs=tuple(
        StageCost(name=name, rows=10, seconds=2.0, peak_bytes=2**21, reused=False) for name, _ in MEASURED
    ),
)
COMPARED = Compared(
    400,
    dict.fromkeys(JOBS, (10, 0, None)),
    (Finding("hash", 3, 2, 2, 0), Finding("generation", 3, 3, 3, 0)),
)
GOOD = View(PlacesParameters(logs=40, fragments=1000), COMPARED, SCALE)
