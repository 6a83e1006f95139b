"""Text in, text back: memory for agents, on top of the store."""
