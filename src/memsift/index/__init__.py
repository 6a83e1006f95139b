"""Finding the nearest entries, and the filter that narrows them."""

from memsift.index.exact import ExactIndex
from memsift.index.where import Filter, compile_filter

__all__ = ["ExactIndex", "Filter", "compile_filter"]
