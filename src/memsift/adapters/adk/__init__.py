"""Google ADK's long-term memory (`BaseMemoryService`) on a memsift file, inside a hard budget."""

from memsift.adapters.adk.service import MemsiftMemoryService

__all__ = ["MemsiftMemoryService"]
