"""Memories in a collection of Chroma: a server, or a folder of `PersistentClient`.

`connection` is the way there, `source` reads, plans and deletes.
"""

from memsift.errors import MissingExtra

try:
    import chromadb  # noqa: F401
except ImportError:
    raise MissingExtra("Chroma needs chromadb: pip install 'memsift[chroma]'") from None

from memsift.backends.chroma.connection import source_of_url
from memsift.backends.chroma.source import ChromaSource

__all__ = ["ChromaSource", "source_of_url"]
