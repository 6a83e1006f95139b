"""The server's campaigns in full: hostile lines, a crowd of servers, large bodies.

python tests/server/torture.py all        # or: stdio, crowd, bodies; prints JSON
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import crowd
import hostile
from web_talk import ACCEPT, BEARER, JSON, web

from memsift.server.http.gate import LARGEST_BODY


def stdio(folder: Path, count: int = 5_000) -> dict[str, Any]:
    """`count` hostile lines in each era of the protocol."""
    out = {}
    for era in ("2025-11-25", "2026-07-28"):
        done = hostile.run(folder / f"{era}.memsift", count, seed=2026, era=era)
        out[era] = {
            "lines": done.messages,
            "replies_by_id": done.replies,
            "replies_without_id": done.unnamed,
            "missing": len(done.missing),
            "surplus": len(done.surplus),
            "unexpected_without_id": done.unnamed - done.unnamed_expected,
            "non_json_lines": len(done.bad_lines),
            "exit_code": done.exit_code,
            "grown_mib": round(done.grown / 2**20, 1),
            "slowest_forty_seconds": round(done.slowest, 3),
        }
    return out


def many(folder: Path, servers: int = 8, seconds: float = 60.0) -> dict[str, Any]:
    """`servers` processes on one file, busy for `seconds`."""
    done = crowd.run(folder / "crowd.memsift", servers, seconds)
    return {
        "servers": servers,
        "seconds": seconds,
        "added": done.added,
        "evicted": done.evicted,
        "calls": dict(done.calls),
        "problems": done.problems[:10],
    }


def bodies(folder: Path, count: int = 1_000) -> dict[str, Any]:
    """`count` bodies of 4 MiB, eight at a time, half of them without the token; what is served may be refused."""
    statuses: dict[int, int] = {}
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
        + b"x" * (LARGEST_BODY - 58)
        + b'"}}'
    )
    with web(folder / "web.memsift") as served, ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            served.ask("POST", "/mcp", BEARER, JSON, ACCEPT, body=body)
        before = rss()

        def one(number: int) -> int:
            token = [BEARER] if number % 2 else []
            return served.ask("POST", "/mcp", *token, JSON, ACCEPT, body=body).status

        for status in pool.map(one, range(count)):
            statuses[status] = statuses.get(status, 0) + 1
        # The clients live in this process too, so this is more than the server's own.
        grown, health = rss() - before, served.ask("GET", "/health").status
    return {
        "bodies": count,
        "statuses": statuses,
        "grown_mib": round(grown / 2**20, 1),
        "health": health,
    }


def rss() -> int:
    text = Path(f"/proc/{os.getpid()}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


CAMPAIGNS = {"stdio": stdio, "crowd": many, "bodies": bodies}


def main() -> None:
    names = sys.argv[1:] or ["all"]
    for name in CAMPAIGNS if names == ["all"] else names:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({name: CAMPAIGNS[name](Path(folder))}, indent=2))


if __name__ == "__main__":
    main()
