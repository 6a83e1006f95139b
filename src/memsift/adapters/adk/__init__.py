"""Google ADK's long-term memory (`BaseMemoryService`) on a memsift file, inside a hard budget."""

from memsift.adapters.extras import needed

with needed("google", "adk"):
    from memsift.adapters.adk.service import MemsiftMemoryService

__all__ = ["MemsiftMemoryService"]
