"""Talking to `memsift serve` as a client would, and as no client should: line by line, without the SDK."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import memsift

SOURCE = Path(memsift.__file__).parents[1]
PATIENCE = 60.0  # only ends hangs
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def environment() -> dict[str, str]:
    """This process's, with the package under test and one thread for numpy."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}


def command(file: Path | str, *options: str) -> list[str]:
    return [sys.executable, "-m", "memsift", "serve", str(file), "--embedder", "hashed", *options]


class Talk:
    """One `memsift serve` over pipes. Every line of its stdout must be JSON, or `bad` holds it."""

    def __init__(self, file: Path | str, *options: str, argv: list[str] | None = None) -> None:
        self.process = subprocess.Popen(
            argv or command(file, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.bad: list[bytes] = []
        self.stderr = b""
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._out, self._err)]
        for thread in self._threads:
            thread.start()

    def _out(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self.lines.put(json.loads(line))
            except ValueError:
                self.bad.append(line)
        self.lines.put(None)

    def _err(self) -> None:
        assert self.process.stderr is not None
        self.stderr = self.process.stderr.read()

    def raw(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def next(self) -> dict[str, Any] | None:
        """The next message; None once stdout is closed."""
        return self.lines.get(timeout=PATIENCE)

    def ask(self, method: str, params: dict[str, Any] | None = None, id_: Any = "ask") -> Any:
        """Send a request and wait for its answer, past whatever else comes."""
        self.send(id=id_, method=method, **({} if params is None else {"params": params}))
        while (message := self.next()) is not None:
            if message.get("id") == id_:
                return message
        raise AssertionError(f"no answer to {method}; stderr: {self.stderr[-2000:]!r}")

    def hello(self, era: str = "2025-11-25") -> None:
        """Open the conversation in one of the two eras."""
        if era == "2026-07-28":
            answer = self.ask("server/discover", {"_meta": META})
        else:
            answer = self.ask("initialize", HELLO)
            self.send(method="notifications/initialized")
        assert answer["result"]["capabilities"]["tools"] is not None

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """A tool's result, on a connection of the older era."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments or {}})
        assert "result" in answer, answer
        return answer["result"]

    def rss(self) -> int:
        """Bytes of RAM; 0 where the system does not say."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        return int(text.split("VmRSS:")[1].split()[0]) * 1024

    def close(self) -> int:
        """Close its stdin, wait, and give its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            for thread in self._threads:
                thread.join(PATIENCE)
            assert self.process.stdout is not None
            assert self.process.stderr is not None
            self.process.stdout.close()
            self.process.stderr.close()
        return code

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.close()
