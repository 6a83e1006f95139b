"""Memories in a collection of Qdrant: a server, a cluster, or a folder in local mode.

`points` tells ids and payloads, `connection` is the way to the server, `source` reads, plans and deletes.
"""

from memsift.errors import MissingExtra

try:
    import qdrant_client  # noqa: F401
except ImportError:
    raise MissingExtra("Qdrant needs qdrant-client: pip install 'memsift[qdrant]'") from None

from memsift.backends.qdrant.connection import source_of_url
from memsift.backends.qdrant.points import id_of, point_id, to_point
from memsift.backends.qdrant.source import QdrantSource

__all__ = ["QdrantSource", "id_of", "point_id", "source_of_url", "to_point"]
