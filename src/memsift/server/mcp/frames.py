"""What one line of the wire is: a message to pass on, an answer to give at once, or nothing.

The SDK leaves lines without an answer that are no JSON, a batch, nested too deep, or whose id is no id. Here each gets
a JSON-RPC error, and whatever names an id gets it back.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602

LARGEST_LINE = 4 * 1024 * 1024
DEEPEST = 64
LONGEST_ID = 256
LARGEST_BATCH = 100

Id = str | int | None


class Frame(NamedTuple):
    """A line as it was understood: at most one of the two is filled.

    `message` is a checked JSON-RPC object for the server, `replies` are errors to be sent back as they are.
    """

    message: dict[str, Any] | None = None
    replies: tuple[dict[str, Any], ...] = ()


def refusal(code: int, words: str, id_: Id = None) -> dict[str, Any]:
    """A JSON-RPC error; `id_` is None where no id could be told."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": words}}


def understand(line: bytes) -> Frame:
    """What a whole line says. Never raises."""
    if len(line) > LARGEST_LINE:
        return too_long(line[:4096], line[-4096:])
    if not line.strip():
        return Frame()
    try:
        data = json.loads(line, parse_constant=_no_json)
    except RecursionError:
        return _refuse(INVALID_REQUEST, _DEPTH, _id_at_the_edge(line[:4096], line[-4096:]))
    except ValueError:  # no JSON, no UTF-8, NaN, or an integer of thousands of digits
        return _refuse(PARSE_ERROR, "this line is not JSON")
    if isinstance(data, list):
        return _batch(data)
    if not isinstance(data, dict):
        return _refuse(INVALID_REQUEST, "a message must be a JSON object")
    return _single(data)


def too_long(head: bytes, tail: bytes) -> Frame:
    """The answer to a line of more than `LARGEST_LINE` bytes, of which only both ends were kept."""
    words = f"a message must be at most {LARGEST_LINE} bytes"
    return _refuse(INVALID_REQUEST, words, _id_at_the_edge(head, tail))


_DEPTH = f"a message must be nested at most {DEEPEST} deep"


def _single(data: dict[str, Any]) -> Frame:
    id_ = data.get("id")
    named = "id" in data
    known = id_ if _is_id(id_) else None
    if "method" not in data and ("result" in data or "error" in data):
        # A response; to answer one with an error would make two sides talk for ever.
        return Frame(data) if known is not None and not _deep(data) else Frame()
    if named and known is None:
        return _refuse(
            INVALID_REQUEST, f"id must be an integer, or text of at most {LONGEST_ID} characters"
        )
    if data.get("jsonrpc") != "2.0":
        return _refuse(INVALID_REQUEST, 'jsonrpc must be "2.0"', known)
    method = data.get("method")
    if not isinstance(method, str) or not 1 <= len(method) <= 128 or not method.isascii():
        return _refuse(INVALID_REQUEST, "method must be ASCII text of 1 to 128 characters", known)
    if _deep(data):
        return _refuse(INVALID_REQUEST, _DEPTH, known)
    if not isinstance(data.get("params", {}), dict):
        return _refuse(INVALID_PARAMS, "params must be an object", known)
    return Frame(data)


def _batch(parts: list[Any]) -> Frame:
    """No revision that is served has batches: each request in one is refused by its id."""
    words = "batches are not served: send one message per line"
    ids = [part["id"] for part in parts if isinstance(part, dict) and _is_id(part.get("id"))]
    if not 1 <= len(ids) <= LARGEST_BATCH:
        return _refuse(INVALID_REQUEST, words)
    return Frame(replies=tuple(refusal(INVALID_REQUEST, words, id_) for id_ in ids))


def _refuse(code: int, words: str, id_: Id = None) -> Frame:
    return Frame(replies=(refusal(code, words, id_),))


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID and not re.search("[\ud800-\udfff]", value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _deep(data: Any) -> bool:
    """Whether containers are nested deeper than `DEEPEST`, told without recursion."""
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            return True
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list))
        ]
    return False


def _no_json(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,256}")'
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_LAST = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def _id_at_the_edge(head: bytes, tail: bytes) -> Id:
    """The id of a message that is not read as a whole, where it stands first or last, as clients write it."""
    found = _FIRST.match(head) or _LAST.search(tail)
    if found is None:
        return None
    try:
        id_ = json.loads(found[1])
    except ValueError:
        return None
    return id_ if _is_id(id_) else None
