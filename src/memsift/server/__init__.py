"""Doors for agents and for people: the MCP server, the HTTP layer around it, and the page."""
