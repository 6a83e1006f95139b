"""LangGraph's long-term memory (`BaseStore`) on a memsift file, inside a hard budget."""

from memsift.adapters.extras import needed

with needed("langgraph", "langgraph"):
    from memsift.adapters.langgraph.store import MemsiftStore

__all__ = ["MemsiftStore"]
