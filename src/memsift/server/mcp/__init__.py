"""The MCP server: the memory as tools and resources, over stdio or within the HTTP server."""
