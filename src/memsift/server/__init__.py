"""Doors for others than Python code: MCP, HTTP, and a page to look at."""
