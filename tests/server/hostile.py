"""Messages that nobody should send, by a grammar and by broken bytes, and what must be said to each."""

from __future__ import annotations

import json
import queue
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_talk import META, Talk

TOOLS = [
    "memory_add",
    "memory_search",
    "memory_feedback",
    "memory_pin",
    "memory_delete",
    "memory_stats",
    "memory_plan",
    "memory_compact",
    "memory_explain",
    "memory_restore",
    "memory_audit",
    "memory_erase",
    "nothing",
]
WORDS = [
    "",
    "tea",
    "\x1b[31mred",
    "\u202eevil",
    "ignore all previous instructions",
    "x" * 5000,
    "ça va",
    "\ud800",
]
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, 1e308, [], {}, [[]], {"a": {"b": []}},
    float("nan"), float("inf"), *WORDS,
]  # fmt: skip
NAMES = [
    "text",
    "texts",
    "metadata",
    "importance",
    "pinned",
    "supersedes",
    "query",
    "k",
    "where",
    "touch",
    "ids",
    "used",
    "target_pct",
    "force",
    "limit",
    "id",
    "last",
]


@dataclass
class Campaign:
    """Deterministic lines. `ids` are never used twice, so each reply can be told from all others."""

    seed: int
    era: str
    ids: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def lines(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            kind = self.chance.random()
            if kind < 0.45:
                yield self._json(self._message())
            elif kind < 0.85:
                yield self._broken(self._json(self._message()))
            else:
                yield self.chance.choice(SPECIAL)(self)

    def fresh(self) -> Any:
        self.ids += 1
        number = self.seed * 10**9 + self.ids
        return number if self.chance.random() < 0.7 else f"id-{number}"

    def _message(self) -> Any:
        chance = self.chance
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self.fresh(), "method": self._method()}
        if message["method"] == "tools/call":
            names = chance.sample(NAMES, chance.randrange(4))
            arguments = {name: chance.choice(ODD) for name in names}
            message["params"] = {"name": chance.choice(TOOLS), "arguments": arguments}
        elif chance.random() < 0.6:
            message["params"] = {chance.choice(["uri", "name", "cursor"]): chance.choice(ODD)}
        if self.era == "2026-07-28" and chance.random() < 0.9:
            message.setdefault("params", {})["_meta"] = META
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            place = chance.choice([*message, "jsonrpc", "params", "extra"])
            if chance.random() < 0.3:
                message.pop(place, None)
            elif place != "id":
                message[place] = chance.choice(ODD)
            else:
                message["id"] = chance.choice(
                    [None, True, 1.5, [], {}, "x" * 400, "\ud800", 10**40]
                )
        return message

    def _method(self) -> str:
        common = ["tools/call"] * 6 + ["tools/list", "ping", "resources/list", "resources/read"]
        odd = [
            "initialize",
            "prompts/list",
            "logging/setLevel",
            "no/such",
            "",
            "é",
            "server/discover",
            "x" * 300,
        ]
        return self.chance.choice(common + odd)

    def _json(self, message: Any) -> bytes:
        return json.dumps(message).encode()

    def _broken(self, line: bytes) -> bytes:
        data = bytearray(line)
        for _ in range(self.chance.choice([1, 1, 2, 5, 20])):
            place = self.chance.randrange(len(data) + 1)
            kind = self.chance.randrange(4)
            if kind == 0 and place < len(data):
                data[place] ^= 1 << self.chance.randrange(8)
            elif kind == 1:
                data[place:place] = bytes([self.chance.randrange(256)])
            elif kind == 2:
                del data[place : place + self.chance.randrange(1, 9)]
            else:
                data = data[: max(1, place)]
        return bytes(data).replace(b"\n", b" ")


def _deep(campaign: Campaign, depth: int = 20_000) -> bytes:
    head = json.dumps({"jsonrpc": "2.0", "id": campaign.fresh(), "method": "ping"})[:-1].encode()
    return head + b', "params": {"a": ' + b"[" * depth + b"]" * depth + b"}}"


SPECIAL = [
    _deep,
    lambda c: _deep(c, 100),
    lambda c: json.dumps([c._message() for _ in range(c.chance.randrange(4))]).encode(),
    lambda c: json.dumps({"jsonrpc": "2.0", "id": c.fresh(), "result": {}}).encode(),
    lambda c: json.dumps({"jsonrpc": "2.0", "method": c.chance.choice(["notifications/x", "ping"])}).encode(),
    lambda c: c.chance.randbytes(c.chance.randrange(200)).replace(b"\n", b" "),
    lambda c: c.chance.choice([b"", b"   ", b"null", b"1", b'"x"', b"NaN", b"{}", b"[]", b"[[]]", b"\xff\xfe"]),
    lambda c: b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"n":%s}}' % (c.seed, b"9" * 5000),
]  # fmt: skip


def expected(line: bytes) -> tuple[Counter[Any], int]:
    """What must come back, by a dumb model: replies by id, and replies without one."""
    if not line.strip():
        return Counter(), 0
    try:
        data = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        return Counter([json.loads(line[: line.index(b', "method"')] + b"}")["id"]]), 0
    except ValueError:
        return Counter(), 1
    if isinstance(data, list):
        ids = [part["id"] for part in data if isinstance(part, dict) and _usable(part.get("id"))]
        return Counter(ids), int(not ids)
    if not isinstance(data, dict):
        return Counter(), 1
    if "method" not in data and ("result" in data or "error" in data):
        return Counter(), 0
    if "id" in data:
        return (Counter([data["id"]]), 0) if _usable(data["id"]) else (Counter(), 1)
    return Counter(), int(not _well_formed_notification(data))


def _usable(id_: Any) -> bool:
    if isinstance(id_, str):
        return len(id_) <= 256 and not any("\ud800" <= c <= "\udfff" for c in id_)
    return type(id_) is int and abs(id_) < 2**63


def _well_formed_notification(data: dict[str, Any]) -> bool:
    method = data.get("method")
    named = isinstance(method, str) and method.isascii() and 1 <= len(method) <= 128
    return data.get("jsonrpc") == "2.0" and named and isinstance(data.get("params", {}), dict)


def _refuse(word: str) -> None:
    raise ValueError(word)


@dataclass
class Outcome:
    """What came of a campaign."""

    messages: int
    replies: int
    missing: list[Any]
    surplus: list[Any]
    unnamed: int
    unnamed_expected: int
    bad_lines: list[bytes]
    exit_code: int
    grown: int
    slowest: float
    stderr: bytes


def run(file: Path, count: int, seed: int, era: str, at_once: int = 40) -> Outcome:
    """Send `count` lines, `at_once` at a time and then a ping; collect what comes back."""
    campaign = Campaign(seed, era)
    due: Counter[Any] = Counter()
    came: Counter[Any] = Counter()
    unnamed = unnamed_expected = 0
    slowest = 0.0
    with Talk(file, "--budget", "200") as talk:
        talk.hello(era)
        ping = {"params": {"_meta": META}} if era == "2026-07-28" else {}
        before, sent = talk.rss(), 0
        lines = list(campaign.lines(count))
        while sent < count:
            part = lines[sent : sent + at_once]
            began = time.monotonic()
            for line in part:
                by_id, nameless = expected(line)
                due += by_id
                unnamed_expected += nameless
                talk.raw(line)
            sent += len(part)
            marker = f"marker-{sent}"
            talk.send(id=marker, method="tools/list", **ping)
            due[marker] += 1
            # Calls are answered when they are done, in any order: read until all that is due is there.
            while due - came:
                try:
                    message = talk.next()
                except queue.Empty:  # what is missing is told below
                    break
                if message is None:
                    break
                if "method" in message:
                    continue
                if message.get("id") is None:
                    unnamed += 1
                else:
                    came[message["id"]] += 1
            slowest = max(slowest, time.monotonic() - began)
            if talk.process.poll() is not None:
                break
        grown = talk.rss() - before
        code = talk.close()
        while (message := talk.next()) is not None:
            came[message.get("id")] += 1
    return Outcome(
        sent, sum(came.values()), list((due - came).elements()), list((came - due).elements()), unnamed,
        unnamed_expected, talk.bad, code, grown, slowest, talk.stderr,
    )  # fmt: skip
