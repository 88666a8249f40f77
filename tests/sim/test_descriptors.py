from __future__ import annotations

import msgspec
import pytest

from linnet.core.errors import RemoteError
from linnet.identity.keys import SigningKey
from linnet.overlay.trackerless.descriptor import sign_descriptor
from linnet.sim.descriptors import RememberingSignatureCheck


def test_each_descriptor_is_checked_once_and_forgeries_fail_each_time() -> None:
    good = sign_descriptor(SigningKey(bytes(32)), 1, 1, b"", 0, 1, (), 10)
    forged = msgspec.structs.replace(good, version=2)
    check = RememberingSignatureCheck()
    for _ in range(3):
        check(good)
        check(msgspec.structs.replace(good))
        with pytest.raises(RemoteError, match="bad_signature"):
            check(forged)
    assert check.checked == 2
