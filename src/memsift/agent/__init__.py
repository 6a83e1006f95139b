"""Memory for agents: text goes in and comes out, the core keeps vectors and forgets within the budget."""

from memsift.agent.aio import AsyncAgentMemory
from memsift.agent.memory import AgentMemory
from memsift.agent.records import AgentStats, Recollection, Remembered

__all__ = ["AgentMemory", "AgentStats", "AsyncAgentMemory", "Recollection", "Remembered"]
