"""The static files, read once: small enough to be held, tagged so that a browser asks but does not fetch again."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsift.server.page.answers import HEADERS, refusal

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def static_routes() -> list[Route]:
    """`/`, `/static/NAME` and `/favicon.ico`."""
    held = {
        file.name: (file.read_bytes(), kind)
        for file in files(__package__).joinpath("static").iterdir()
        if (kind := KINDS.get("." + file.name.rpartition(".")[2]))
    }
    tags = {name: f'"{hashlib.sha256(body).hexdigest()[:24]}"' for name, (body, _) in held.items()}

    def serve(request: Request, name: str) -> Response:
        if name not in held:
            return refusal("there is no such file", 404)
        body, kind = held[name]
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": tags[name]}
        if tags[name] in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
        return Response(body, 200, headers, media_type=kind)

    async def page(request: Request) -> Response:
        return serve(request, "index.html")

    async def icon(request: Request) -> Response:
        return serve(request, "icon.svg")

    async def file(request: Request) -> Response:
        return serve(request, request.path_params["name"])

    return [Route("/", page), Route("/favicon.ico", icon), Route("/static/{name}", file)]
