"""The recipe of docs/migrating.md for LangGraph's own store in PostgreSQL, on a real server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_from_langgraph_s_postgres_store(owner: Any, server: Any, database: str, tmp_path: Path):
    postgres = pytest.importorskip("langgraph.store.postgres", reason="needs memsift[dev]")
    from memsift.adapters.langgraph import MemsiftStore

    names: dict[str, Any] = {}
    code = re.findall(r"```python\n(.*?)```", (DOCS / "migrating.md").read_text(), re.DOTALL)[0]
    exec(compile(code, "migrating.md", "exec"), names)  # noqa: S102 - our own document
    items = {((f"u{i % 3}", "x")[: 1 + i % 2], str(i)): {"n": i} for i in range(50)}
    with (
        postgres.PostgresStore.from_conn_string(server.dsn(database)) as theirs,
        MemsiftStore(tmp_path / "a.memsift") as ours,
    ):
        theirs.setup()
        for (namespace, key), value in items.items():
            theirs.put(namespace, key, value)
        for _ in range(2):  # a recipe may be run again
            names["from_langgraph"](theirs, ours, page=7)
        found = {(item.namespace, item.key): item.value for item in ours.search((), limit=100)}
    assert found == items
