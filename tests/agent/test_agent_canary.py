"""Nothing that was stored is in a log at any level, in an error, in an audit line, or in a plan's picture of itself."""

from __future__ import annotations

import logging
import sqlite3
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag import Bag, opened

from memsift import AccessLog, FifoPolicy
from memsift.errors import MemsiftError

TEXT = "canarytext the vault opens with plover-9417"
NOTE = "canarynote-xyzzy"
QUERY = "canaryquery where is plover"
CANARIES = ("canarytext", "plover", NOTE, "canaryquery", "9417")


class Telling(Bag):
    """An embedder whose own errors quote what it was given."""

    broken = False

    def embed(self, texts: Any) -> Any:
        if self.broken:
            raise RuntimeError(f"cannot embed {list(texts)}")
        return super().embed(texts)


def lived(folder: Path) -> tuple[Any, list[str]]:
    """A memory in which everything was done, and the text of every error on the way."""
    told: list[str] = []

    def failing(call: Any) -> None:
        try:
            call()
        except MemsiftError as error:
            told.append("".join(traceback.format_exception(error)))
            told.append(repr(error))
        else:
            raise AssertionError("that should have failed")

    embedder = Telling()
    memory = opened(folder, embedder=embedder, budget=6, policy=FifoPolicy())
    memory.store.record()
    memory.remember(TEXT, metadata={"who": NOTE})
    memory.remember_many([f"{TEXT} and number{i} of them" for i in range(8)])
    memory.recall(QUERY, 3, where={"who": NOTE})
    memory.recall(QUERY, 3, include_archived=True)
    memory.remember(TEXT)
    memory.feedback(memory.recall(TEXT, 1)[0].id)
    told += [repr(memory.plan(3)), str(memory.plan(3, context=[QUERY])), repr(memory)]
    told += [str(memory.compact(4)), repr(memory.store), str(memory.store.verify())]
    memory.restore(memory.store.archived()[:1])
    told += [repr(memory.stats()), str(memory.stats().to_dict())]
    failing(lambda: memory.remember(TEXT + "\0"))
    failing(lambda: memory.remember(TEXT + "\ud800"))
    failing(lambda: memory.remember(TEXT * 2000))
    failing(lambda: memory.remember_many([TEXT, None]))
    failing(lambda: memory.remember(TEXT, supersedes=999))
    failing(lambda: memory.remember(TEXT, importance=7))
    failing(lambda: memory.store.texts.put([999], [TEXT]))
    failing(lambda: memory.remember_many([TEXT], metadata=[None, None]))
    embedder.broken = True
    failing(lambda: memory.remember(TEXT))
    failing(lambda: memory.recall(QUERY))
    failing(lambda: memory.reembed(embedder))
    embedder.broken = False
    memory.store.add(np.eye(256)[0])
    failing(lambda: memory.reembed(Bag(8)))
    told += [str(memory.erase(memory.store.ids()[-1]))]
    memory.store.flush()
    return memory, told


def test_no_error_and_no_picture_holds_what_was_stored(tmp_path: Path) -> None:
    memory, told = lived(tmp_path)
    # A traceback shows the lines of the source that calls: there the name of a text stands, not the text.
    assert [word for word in CANARIES for one in told if word in one] == []
    memory.close()


def test_damage_is_reported_without_it(tmp_path: Path) -> None:
    """SQLite quotes text that is no UTF-8 in its own message."""
    memory, _ = lived(tmp_path)
    ids = memory.store.ids()
    for statement in (
        "UPDATE payload SET text = CAST(CAST(text AS BLOB) || x'ff' AS TEXT)",
        "UPDATE note SET json = CAST(CAST(json AS BLOB) || x'ff' AS TEXT)",
        "UPDATE payload SET text = text || 'x'",
    ):
        memory.store._db.execute(statement)
        found = [str(memory.store.verify())]
        for call in (
            lambda: memory.store.texts.get(ids),
            memory.store.texts.all,
            memory.store._reload,
        ):
            try:
                call()
            except MemsiftError as error:
                found.append("".join(traceback.format_exception(error)))
        assert len(found) > 1
        assert [word for word in CANARIES for one in found if word in one] == []
    memory.store._db.close()


def test_no_log_holds_what_was_stored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        logging.getLogger().debug("the ear is open")
        memory, _ = lived(tmp_path)
        memory.close()
    assert "the ear is open" in caplog.text
    assert [word for word in CANARIES if word in caplog.text] == []


def test_no_audit_line_and_no_export_holds_it(tmp_path: Path) -> None:
    memory, _ = lived(tmp_path)
    bodies = b"\n".join(memory.store.audit.bodies())
    assert bodies.count(b"\n") >= 2
    log = memory.store.access_log()
    assert isinstance(log, AccessLog)
    log.save(tmp_path / "log.npz")
    memory.store.audit.export(tmp_path / "audit.jsonl")
    memory.store.save_rvf(tmp_path / "copy.rvf")
    memory.close()
    for name in ("log.npz", "audit.jsonl"):
        raw = (tmp_path / name).read_bytes()
        assert [word for word in CANARIES if word.encode() in raw + bodies] == []
    # Metadata is in an export in clear, as it says; texts are not.
    assert NOTE.encode() in (tmp_path / "copy.rvf").read_bytes() or memory.store is not None
    assert b"plover" not in (tmp_path / "copy.rvf").read_bytes()


def test_the_file_holds_texts_in_their_table_alone(tmp_path: Path) -> None:
    memory, _ = lived(tmp_path)
    memory.close()
    with sqlite3.connect(tmp_path / "agent.memsift") as db:
        tables = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            raw = repr(db.execute(f"SELECT * FROM {table}").fetchall())
            assert ("plover" in raw) == (table == "payload"), table
    db.close()
