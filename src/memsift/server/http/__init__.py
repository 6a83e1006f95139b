"""The HTTP server: one app for MCP and the page, behind a gate of our own."""
