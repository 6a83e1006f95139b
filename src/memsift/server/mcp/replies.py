"""Replies as data: hits that are marked and clean, and lists cut to what a client takes in."""

from __future__ import annotations

import json
from typing import Any

from memsift.agent import Recollection
from memsift.server.mcp.desk import Desk
from memsift.server.wording import clean, cleaned

# Clients were seen to lose replies of about 66,000 characters. A reply says everything twice, as data and as text.
LARGEST_REPLY = 60_000
MOST_IDS_SHOWN = 200
SNIPPET = 160
_FRAME = 600  # what the protocol writes around a reply


def hit(found: Recollection, desk: Desk) -> dict[str, Any]:
    """A memory as it leaves: clean, marked, with its source."""
    text = None if found.text is None else clean(found.text)
    metadata = cleaned(found.metadata)
    return {
        "id": found.id,
        "score": None if found.score is None else round(float(found.score), 6),
        "text": text,
        "metadata": metadata,
        "created_at": found.created_at,
        "access_count": found.access_count,
        "use_count": found.use_count,
        "cost": found.cost,
        "pinned": found.pinned,
        "archived": found.archived,
        "source": desk.source(found.id),
        "untrusted": True,
        "altered": text != found.text or metadata != found.metadata,
    }


def snippet(text: str | None) -> str | None:
    """How a text begins, on one line."""
    if text is None:
        return None
    line = " ".join(clean(text[: 4 * SNIPPET]).split())
    return line if len(line) <= SNIPPET else line[: SNIPPET - 1] + "…"


def weight(data: Any) -> int:
    """Characters that `data` takes in a reply: once as JSON, and once as JSON within a text."""
    once = json.dumps(data, ensure_ascii=False)
    return len(once) + len(json.dumps(once, ensure_ascii=False))


def cut_to_fit(reply: dict[str, Any], name: str) -> dict[str, Any]:
    """`reply` with as many of the items of `reply[name]` as fit; `omitted` and `notice` say what is missing.

    The first item always stays: if it alone is too long, its text is cut.
    """
    if weight(reply) <= LARGEST_REPLY - _FRAME:
        return reply
    items: list[dict[str, Any]] = reply[name]
    kept: list[dict[str, Any]] = []
    room = LARGEST_REPLY - _FRAME - weight({**reply, name: []})
    notice = reply["notice"]
    for item in items:
        size = weight(item) + 4
        if size > room and not kept:
            item, size = _shortened(item, room), room
            notice = "A text was cut: the reply would be too long."
        if size > room:
            break
        kept.append(item)
        room -= size
    if missing := len(items) - len(kept):
        notice = f"{missing} of {len(items)} {name} were left out: the reply would be too long. Ask for fewer."
    return {**reply, name: kept, "omitted": reply["omitted"] + missing, "notice": notice}


def ids_shown(ids: Any) -> list[int]:
    """At most 200 ids."""
    return [int(id_) for id_ in ids[:MOST_IDS_SHOWN]]


def _shortened(item: dict[str, Any], room: int) -> dict[str, Any]:
    """An item with so much of its text that it fits; then without its metadata, which the text leaves no room for."""
    item = {**item, "altered": True}
    while weight(item) > room and item["text"]:
        item["text"] = item["text"][: len(item["text"]) // 2]
    return item if weight(item) <= room else {**item, "metadata": {}}
