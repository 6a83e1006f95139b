"""How long `memsift serve` takes: to start, to search, to add many. Prints JSON.

    python tools/mcp_speed.py [--repeats 7]

Everything that is compared is measured in turns in one run, so that a busy machine slows both alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from memsift.agent import AgentMemory
from memsift.agent.embedders import parse
from memsift.store import MemoryStore

ENTRIES = 10_000
QUERIES = 200
TEXTS = 1_000


class Server:
    """`memsift serve` over pipes; each call is one line there and one line back."""

    def __init__(self, file: Path, *options: str) -> None:
        source = str(Path(__file__).parents[1] / "src")
        environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memsift", "serve", str(file), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def hello(self) -> None:
        assert self.process.stdin is not None
        info = {"name": "speed", "version": "1"}
        self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        )
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def cpu(self) -> float:
        """Seconds of CPU that it took so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def middle(values: list[float]) -> float:
    return round(statistics.median(values), 5)


def startup(folder: Path, repeats: int) -> dict[str, Any]:
    """From the start of the process to its first answers, on 10,000 entries of 384 dimensions; the embedder is lazy."""
    file = folder / "start.memsift"
    fingerprint = parse("minilm").fingerprint
    with MemoryStore.open(file, dim=384, budget=2 * ENTRIES, embedder=fingerprint) as store:
        ids = store.add_many(np.random.default_rng(0).standard_normal((ENTRIES, 384)))
        store.texts.put(ids, [f"text number {i} of the file" for i in range(ENTRIES)])
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        server = Server(file, "--embedder", "minilm")
        server.hello()
        first, cpu = time.perf_counter() - began, server.cpu()
        assert server.call("memory_stats")["entries"] == ENTRIES
        runs.append((first, time.perf_counter() - began, cpu))
        server.close()
    names = ("initialize_seconds", "memory_stats_seconds", "cpu_at_initialize_seconds")
    found = {name: middle([run[i] for run in runs]) for i, name in enumerate(names)}
    return found | {"fastest_initialize_seconds": round(min(run[0] for run in runs), 5)}


def searching(folder: Path, embedder: str) -> dict[str, Any]:
    """`memory_search` over stdio beside embedding and searching in this process, in turns; 10,000 texts."""
    file = folder / f"{embedder}.memsift"
    chance = np.random.default_rng(1)
    words = [f"word{i}" for i in range(2_000)]
    made = parse(embedder)
    with MemoryStore.open(
        file, dim=made.dim, budget=2 * ENTRIES, embedder=made.fingerprint
    ) as store:
        ids = store.add_many(chance.standard_normal((ENTRIES, made.dim)))
        store.texts.put(ids, [" ".join(chance.choice(words, 12)) for _ in range(ENTRIES)])
    server, parts, whole = Server(file, "--embedder", embedder), [], []
    server.hello()
    with AgentMemory.open(file, embedder=embedder) as memory:
        for i in range(QUERIES + 20):
            query = " ".join(chance.choice(words, 8))

            def apart(query: str = query) -> None:
                memory.store.search(np.asarray(memory.embedder.embed([query]))[0], 5, touch=False)

            def together(query: str = query) -> None:
                server.call("memory_search", query=query, k=5, touch=False)

            pair = timed(apart), timed(together)
            if i >= 20:
                parts.append(pair[0])
                whole.append(pair[1])
    server.close()
    return {
        "embedding_and_store_search_p50_seconds": middle(parts),
        "memory_search_p50_seconds": middle(whole),
        "ratio": round(statistics.median(whole) / statistics.median(parts), 2),
        "extra_p50_seconds": middle([w - p for w, p in zip(whole, parts, strict=True)]),
    }


def adding(folder: Path, repeats: int) -> dict[str, Any]:
    """`memory_add` of 1,000 texts beside the embedder alone and beside `remember_many` in this process."""
    alone, library, tool = [], [], []
    embedder = parse("wordllama")
    embedder.embed(["warm"])
    for repeat in range(repeats + 1):
        texts = [
            f"Fact {i} of run {repeat}: the {i * 7} things lie in room {i * 13}."
            for i in range(TEXTS)
        ]
        found = _one_addition(folder, repeat, embedder, texts)
        if repeat:  # the first one warms up
            for values, value in zip((alone, library, tool), found, strict=True):
                values.append(value)
    return {
        "embedder_alone_seconds": middle(alone),
        "remember_many_seconds": middle(library),
        "memory_add_seconds": middle(tool),
    }


def _one_addition(folder: Path, number: int, embedder: Any, texts: list[str]) -> list[float]:
    server = Server(folder / f"tool{number}.memsift", "--embedder", "wordllama")
    server.hello()
    server.call("memory_search", query="warm")
    file = folder / f"library{number}.memsift"
    with AgentMemory.open(file, embedder=embedder, budget=10_000) as memory:
        found = [
            timed(lambda: embedder.embed(texts)),
            timed(lambda: memory.remember_many(texts)),
            timed(lambda: server.call("memory_add", texts=texts)),
        ]
    server.close()
    return found


def main() -> None:
    repeats = int(sys.argv[sys.argv.index("--repeats") + 1]) if "--repeats" in sys.argv else 7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "startup": startup(folder, repeats),
            "search": {name: searching(folder, name) for name in ("wordllama", "minilm")},
            "add": adding(folder, repeats),
            "load_average": os.getloadavg()[0],
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
