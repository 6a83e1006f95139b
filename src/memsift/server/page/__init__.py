"""The local page: what is remembered, what would be forgotten next and why, and what was forgotten.

`routes(memory, may_write=...)` are Starlette routes to be mounted at `/` of an application that checks hosts, origins
and sizes. Static files lie in `static/`; JSON is under `/api/`. A GET changes nothing, not even an access counter.
"""

from memsift.server.page.routes import routes

__all__ = ["routes"]
