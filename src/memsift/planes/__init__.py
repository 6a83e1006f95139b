"""How vectors are held: float32 as they come, smaller with some loss, or small and hot over float32 and cold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memsift import checks
from memsift.errors import InvalidValue
from memsift.planes.base import Plane, Stored, stored
from memsift.planes.coded import Float16Plane, Int8Plane
from memsift.planes.full import Float32Plane
from memsift.planes.tiered import TieredPlane

__all__ = ["PLANES", "Plane", "Stored", "make_plane", "plane_name", "stored"]

# In the order in which they are named to users.
PLANES: dict[str, Callable[[int, int, Path | None], Plane]] = {
    "float32": lambda dim, capacity, _: Float32Plane(dim, capacity),
    "tiered": TieredPlane,
    "float16": lambda dim, capacity, _: Float16Plane(dim, capacity),
    "int8": lambda dim, capacity, _: Int8Plane(dim, capacity),
}


def plane_name(value: object) -> str:
    """`value` if it names a plane."""
    if not isinstance(value, str) or value not in PLANES:
        raise InvalidValue(f"vectors must be one of {', '.join(PLANES)}; got {checks.shown(value)}")
    return value


def make_plane(name: str, dim: int, capacity: int, folder: Path | None = None) -> Plane:
    """An empty plane; `folder` is where a cold one lies, the system's temporary one by default."""
    return PLANES[name](dim, capacity, folder)
