"""What each tool does: checked arguments in, one call of the memory, a reply as plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from memsift.agent import Recollection
from memsift.errors import InvalidValue
from memsift.server.mcp.desk import Desk, Progress
from memsift.server.mcp.replies import cut_to_fit, hit, ids_shown, snippet

Arguments = dict[str, Any]
Reply = dict[str, Any]


def add(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    if ("text" in arguments) == ("texts" in arguments):
        raise InvalidValue("arguments must hold either text or texts; got both or neither")
    about: dict[str, Any] = {
        name: arguments[name] for name in ("importance", "pinned") if name in arguments
    }
    note = arguments.get("metadata")
    if "text" in arguments:
        about |= {"metadata": note, "supersedes": arguments.get("supersedes")}
        done = [desk.memory.remember(arguments["text"], **about)]
    else:
        if "supersedes" in arguments:
            raise InvalidValue("supersedes goes with text, not with texts")
        texts = arguments["texts"]
        about["metadata"] = None if note is None else [note] * len(texts)
        done = desk.memory.remember_many(texts, progress=progress, **about)
    evicted = [id_ for each in done for id_ in each.evicted]
    return {
        "ids": [each.id for each in done],
        "added": sum(each.added for each in done),
        "refreshed": [each.id for each in done if not each.added],
        "evicted": len(evicted),
        "evicted_ids": ids_shown(evicted),
        "notice": "The memory is full: this made it forget." if evicted else None,
    }


def search(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    return _search(desk, arguments, touch=arguments.get("touch", True))


def look(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    return _search(desk, arguments, touch=False)


def _search(desk: Desk, arguments: Arguments, *, touch: bool) -> Reply:
    found = desk.memory.recall(
        arguments["query"],
        arguments.get("k", 5),
        where=arguments.get("where"),
        touch=touch,
        include_archived=arguments.get("include_archived", False),
    )
    hits = [hit(each, desk) for each in found]
    return cut_to_fit({"hits": hits, "omitted": 0, "notice": None}, "hits")


def feedback(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    used = arguments.get("used", True)
    desk.memory.feedback(arguments["ids"], used=used)
    return {"ids": arguments["ids"], "used": used}


def pin(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    pinned = arguments.get("pinned", True)
    (desk.memory.pin if pinned else desk.memory.unpin)(arguments["ids"])
    return {"ids": arguments["ids"], "pinned": pinned}


def delete(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    ids = sorted(set(arguments["ids"]))
    desk.memory.forget(ids)
    return {"deleted": len(ids), "ids": ids}


def stats(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    memory = desk.memory
    found = memory.stats()
    store = found.store
    return {
        "namespace": desk.namespace,
        "entries": store.entries,
        "pinned": store.pinned,
        "archived": len(memory.store.archived()),
        "size": store.size._asdict(),
        "budget": store.budget.limits,
        "added": store.added,
        "evicted": store.evicted,
        "deleted": store.deleted,
        "searches": store.searches,
        "compactions": store.compactions,
        "wanted_again": 0 if store.regret is None else store.regret.wanted,
        "policy": store.policy,
        "embedder": found.embedder,
        "keeps_texts": found.payloads,
        "text_bytes": found.text_bytes,
        "read_only": desk.read_only,
    }


def plan(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    progress(0, 2)
    # Looking is free: only doing it needs force.
    made = desk.memory.plan(force=True, **_choice(arguments))
    progress(1, 2)
    limit = arguments.get("limit", 10)
    told = made.to_dict(limit)
    regret = told["expected_regret"] or {}
    texts = desk.memory.get([reason["id"] for reason in told["reasons"]])
    victims = [
        {
            "id": reason["id"],
            "text": snippet(entry.text) if entry is not None else None,
            "score": reason.get("score"),
            "margin": reason.get("margin"),
            "signals": {n: s["contribution"] for n, s in reason.get("signals", {}).items()},
            "source": desk.source(reason["id"]),
            "untrusted": True,
        }
        for reason, entry in zip(told["reasons"], texts, strict=True)
    ]
    reply = {
        "evict": len(made),
        "keep": made.after.entries,
        "policy": told["policy"],
        "needs_force": made.forced,
        "missed_queries": regret.get("missed"),
        "queries": regret.get("queries"),
        "digest": told["digest"],
        "victims": victims,
        "omitted": len(made) - len(victims),
        "notice": None,
    }
    desk.last_plan = cut_to_fit(reply, "victims")
    progress(2, 2)
    return desk.last_plan


def compact(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    force = arguments.get("force", False)
    if arguments["target_pct"] < 50 and not force:
        raise InvalidValue(
            "target_pct below 50 makes more than half of the memory go in one step: look at memory_plan, "
            "then agree with force=true"
        )
    progress(0, 1)
    done = desk.memory.compact(force=force, **_choice(arguments))
    progress(1, 1)
    return {
        "evicted": len(done.dropped),
        "survivors": done.after.entries,
        "policy": done.policy,
        "spared": len(done.spared),
        "audit_head": done.audit_head,
        "evicted_ids": ids_shown(done.dropped),
    }


def explain(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    told = desk.memory.explain(arguments["id"])
    names = ("id", "verdict", "policy", "score", "rank", "of", "margin")
    reply = {
        **{name: told.get(name) for name in names},
        "signals": told.get("signals", {}),
        "memory": [hit(Recollection(**told["entry"]), desk)],
        "omitted": 0,
        "notice": None,
    }
    fitted = cut_to_fit(reply, "memory")
    (memory,) = fitted["memory"]
    return {**{key: fitted[key] for key in (*names, "signals")}, "memory": memory}


def restore(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    ids = sorted(set(arguments["ids"]))
    done = desk.memory.restore(ids)
    gone: Sequence[int] = () if done is None else done.dropped.tolist()
    return {"ids": ids, "evicted": len(gone), "evicted_ids": ids_shown(gone)}


def audit(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    from memsift.audit import Record

    log = desk.memory.store.audit
    verdict = log.verify()
    bodies = list(log.bodies())
    last = [Record.parse(body) for body in islice(reversed(bodies), arguments.get("last", 5))]
    return {
        "status": verdict.status,
        "words": str(verdict),
        "records": len(bodies),
        "head": verdict.hash,
        "last": [_record(each) for each in last],
    }


def _record(each: Any) -> Reply:
    return {
        "seq": each.seq,
        "kind": each.kind,
        "time": each.time / 1e9,
        "policy": None if each.policy is None else each.policy["name"],
        "before": each.before.entries,
        "after": each.after.entries,
        "evicted": each.evicted_count,
        "spared": each.spared,
        "forced": each.forced,
        "hash": each.hash,
    }


def erase(desk: Desk, arguments: Arguments, progress: Progress) -> Reply:
    progress(0, 1)
    receipt = desk.memory.erase(arguments["ids"])
    progress(1, 1)
    return {
        "erased": len(receipt.ids),
        "complete": receipt.complete,
        "places": receipt.places,
        "audit_head": receipt.audit_head,
    }


def _choice(arguments: Arguments) -> dict[str, Any]:
    """What a plan and a compaction are asked alike. The share is of what is held."""
    from memsift.policies import parse

    policy = arguments.get("policy")
    return {
        "target": arguments["target_pct"] / 100,
        "policy": None if policy is None else parse(policy),
        "context": arguments.get("context_window"),
    }
