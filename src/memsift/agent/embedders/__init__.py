"""What makes vectors of texts."""

from memsift.agent.embedders.base import Embedder, as_embedder, near_duplicate, tokens

__all__ = ["Embedder", "as_embedder", "near_duplicate", "tokens"]
