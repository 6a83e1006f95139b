"""The page's routes: what each reads, what each changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memsift import checks
from memsift.audit import Head
from memsift.errors import InvalidValue
from memsift.server.page import history, shown
from memsift.server.page.answers import reading, refusal, writing
from memsift.server.page.asked import Query, body, ids
from memsift.server.page.files import static_routes
from memsift.server.page.looks import ORDERS, SHOWN, Looks

if TYPE_CHECKING:
    from memsift.agent import AgentMemory

PAGE = 100
FURTHEST = 10**9
QUERY = 2_000
# Hits that are looked at to find those of the archive, which a search does not tell apart.
DEEP = 500


def routes(memory: AgentMemory, *, may_write: Callable[[Request], bool]) -> list[BaseRoute]:
    """The page at `/`, its files under `/static/`, and JSON under `/api/`.

    Parameters
    ----------
    memory : AgentMemory
        What the page shows. It is only ever called from worker threads.
    may_write : callable
        Whether a request may change the memory. Asked for each POST, before its body is read; otherwise 401.
    """
    looks = Looks(memory)
    seen, done = Reads(memory, looks, may_write), Deeds(memory, looks)
    gets = {
        "state": seen.state,
        "plan": seen.plan,
        "entries": seen.entries,
        "entry": seen.entry,
        "search": seen.search,
        "archive": seen.archive,
        "regret": seen.regret,
        "audit": seen.audit,
        "verify": seen.verify,
    }
    posts = {"apply": done.apply, "restore": done.restore, "pin": done.pin}
    return [
        *static_routes(),
        *(Route(f"/api/{name}", reading(ask), methods=["GET"]) for name, ask in gets.items()),
        *(
            Route(f"/api/{name}", writing(do, may_write), methods=["POST"])
            for name, do in posts.items()
        ),
        Route("/api/{rest:path}", _unknown, methods=["GET", "POST"]),
    ]


async def _unknown(request: Request) -> Response:
    return refusal("there is no such call", 404)


class Reads:
    """What the page asks. Nothing here leaves a trace in the memory."""

    def __init__(
        self, memory: AgentMemory, looks: Looks, may_write: Callable[[Request], bool]
    ) -> None:
        self.memory, self.looks, self.may_write = memory, looks, may_write

    def state(self, request: Request) -> dict[str, Any]:
        """Figures of this moment, and whether this request could change anything."""
        Query(request)
        store, stats = self.memory.store, self.memory.stats()
        values = stats.store.to_dict()
        regret = values.pop("regret")
        return {
            "namespace": stats.namespace,
            "embedder": stats.embedder,
            "payloads": stats.payloads,
            "text_bytes": stats.text_bytes,
            "dim": store.dim,
            "may_write": self.may_write(request),
            "watermark": store.low_watermark,
            "archived": len(store.archived()),
            "records": len(store.audit),
            "evicted": regret["evicted"],
            "wanted": regret["wanted"],
            **{
                name: values[name]
                for name in (
                    "entries", "pinned", "size", "budget", "tick", "added", "deleted", "searches",
                    "compactions", "policy", "allocated", "vectors",
                )
            },
            "index": values["index"] and values["index"]["kind"],
        }  # fmt: skip

    def plan(self, request: Request) -> dict[str, Any]:
        """What would be forgotten under a target (number or share of entries), and the map of it."""
        look = self.looks.take(Query(request, "target").target("target", 0.9))
        return {**shown.summary(look), "points": shown.points(look)}

    def entries(self, request: Request) -> dict[str, Any]:
        """A page of the entries of a look."""
        query = Query(request, "look", "show", "order", "offset", "limit")
        look = self.looks.get(query.text("look", 40))
        rows = look.order(
            query.one_of("show", "all", SHOWN), query.one_of("order", "score", ORDERS)
        )
        offset = query.integer("offset", 0, 0, FURTHEST)
        some = rows[offset : offset + query.integer("limit", 25, 1, PAGE)]
        return {
            "total": rows.size,
            "offset": offset,
            "entries": shown.entries(self.memory, look, some),
        }

    def entry(self, request: Request) -> dict[str, Any]:
        """One entry of a look with its whole text and metadata."""
        query = Query(request, "look", "id")
        look = self.looks.get(query.text("look", 40))
        id_ = query.integer("id", -1, 0, checks.LARGEST_INT)
        rows = np.flatnonzero(look.plan.view.ids == id_)
        if not rows.size:
            raise InvalidValue(f"id must be that of an entry of this look; got {id_}")
        (found,) = shown.entries(self.memory, look, rows)
        (now,) = self.memory.get([id_])
        whole = {} if now is None else {"text": now.text, "cut": False, "metadata": now.metadata}
        return {**found, **whole}

    def search(self, request: Request) -> dict[str, Any]:
        """The nearest entries, without a trace."""
        query = Query(request, "q", "k", "archived")
        resting = query.one_of("archived", "no", ("no", "yes")) == "yes"
        words, k = query.text("q", QUERY), query.integer("k", 10, 1, PAGE)
        hits = self.memory.recall(words, k, touch=False, include_archived=resting)
        return {"hits": [shown.hit(one) for one in hits]}

    def archive(self, request: Request) -> dict[str, Any]:
        """What rests in the archive: the latest ids first, or the nearest to a query."""
        query = Query(request, "q", "offset", "limit")
        offset = query.integer("offset", 0, 0, FURTHEST)
        limit = query.integer("limit", 25, 1, PAGE)
        store = self.memory.store
        if "q" in request.query_params:
            words = query.text("q", QUERY)
            hits = self.memory.recall(words, DEEP, touch=False, include_archived=True)
            found = [shown.hit(one) for one in hits if one.archived]
            some = found[offset : offset + limit]
            return {"total": len(found), "among": len(hits), "offset": offset, "entries": some}
        resting = store.archived()[::-1]
        ids_ = [int(id_) for id_ in resting[offset : offset + limit]]
        entries = [shown.recollection(e) for e in self.memory.get(ids_) if e is not None]
        return {"total": resting.size, "offset": offset, "entries": entries}

    def regret(self, request: Request) -> dict[str, Any]:
        """What came of forgetting: counters of this moment, and what the chain tells of the past."""
        Query(request)
        found = self.memory.stats().store.regret.to_dict()
        ids_ = [ghost["id"] for ghost in found["recent"]]
        texts = {e.id: e for e in self.memory.get(ids_) if e is not None}
        for ghost in found["recent"]:
            entry = texts.get(ghost["id"])
            ghost["text"] = None if entry is None else shown.recollection(entry)["text"]
        found["restorable"] = (found["restorable"] or [])[:PAGE]
        return {**found, "series": history.series(self.memory.store.audit.bodies())}

    def audit(self, request: Request) -> dict[str, Any]:
        """The last records of the chain, newest first, and where it ends."""
        query = Query(request, "before", "limit")
        before = query.integer("before", checks.LARGEST_INT, 1, checks.LARGEST_INT)
        limit = query.integer("limit", 8, 1, PAGE)
        return history.records(self.memory.store.audit, before, limit)

    def verify(self, request: Request) -> dict[str, Any]:
        """Whether the chain is whole; proved only up to a head that was kept elsewhere."""
        query = Query(request, "head")
        head = None
        if "head" in request.query_params:
            head = Head.parse(query.text("head", 400).strip() + "\n")
        verdict = self.memory.store.audit.verify(head)
        return {"status": verdict.status, "seq": verdict.seq, "last": verdict.last, "words": str(verdict)}  # fmt: skip


class Deeds:
    """What the page may do, for who has the token."""

    def __init__(self, memory: AgentMemory, looks: Looks) -> None:
        self.memory, self.looks = memory, looks

    async def apply(self, request: Request) -> dict[str, Any]:
        """Do what a look's plan says. `count` is the number that was agreed to; below half needs `force`."""
        asked = await body(request, "look", "count", "force")
        if not isinstance(asked["look"], str):
            raise InvalidValue(f"look must be text; got {checks.shown(asked['look'])}")
        plan = self.looks.get(asked["look"]).plan
        count = checks.integer(asked["count"], "count", 1)
        force = checks.flag(asked["force"], "force")
        if count != len(plan):
            raise InvalidValue(f"count must be the {len(plan)} victims of the plan; got {count}")
        if plan.forced and not force:
            raise InvalidValue(
                "force must be true for a plan that leaves less than half of the entries; got false"
            )
        return shown.compaction(await run_in_threadpool(self.memory.apply, plan))

    async def restore(self, request: Request) -> dict[str, Any]:
        """Bring entries back from the archive; others may leave to make room."""
        wanted = ids((await body(request, "ids"))["ids"])
        done = await run_in_threadpool(self.memory.restore, wanted)
        return {"restored": len(set(wanted)), **shown.compaction(done)}

    async def pin(self, request: Request) -> dict[str, Any]:
        """Pin entries, or unpin them."""
        asked = await body(request, "ids", "pinned")
        wanted, pinned = ids(asked["ids"]), checks.flag(asked["pinned"], "pinned")
        do = self.memory.pin if pinned else self.memory.unpin
        await run_in_threadpool(partial(do, wanted))
        return {"ids": wanted, "pinned": pinned}
