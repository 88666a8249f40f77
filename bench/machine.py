"""The machine that was measured: figures of different machines are not to be compared."""

from __future__ import annotations

import os
import platform
import ssl
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LIBRARIES = ("uvloop", "msgspec", "pynacl", "cryptography")


def facts(directory: Path) -> dict[str, str]:
    """Processor, system, Python, event loop, libraries, and the file system of the stores."""
    return {
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "loop": "asyncio" if _version("uvloop") == "absent" else f"uvloop {_version('uvloop')}",
        "tls": ssl.OPENSSL_VERSION,
        "libraries": ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        "stores": f"{directory} ({_file_system(directory)})",
    }


def load_average() -> tuple[float, float, float]:
    """Processes that wanted a core over the last 1, 5 and 15 minutes."""
    return os.getloadavg()


def resident_bytes(pid: int) -> int | None:
    """Memory that a process holds; None where the system does not tell."""
    return _proc_bytes(Path(f"/proc/{pid}/status"), "VmRSS")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> str:
    total = _proc_bytes(Path("/proc/meminfo"), "MemTotal")
    return "unknown" if total is None else f"{total / 2**30:.1f} GiB"


def _proc_bytes(path: Path, field: str) -> int | None:
    try:
        for line in path.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _file_system(directory: Path) -> str:
    """The type of the mount that holds a directory."""
    if sys.platform != "linux":
        return "unknown"
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        mount, found = line.split()[1:3]
        if directory.is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, found
    return kind
