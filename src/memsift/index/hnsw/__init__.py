"""Approximate search over a graph that is built, mended and saved in the background."""

from memsift.index.hnsw.search import HnswIndex

__all__ = ["HnswIndex"]
