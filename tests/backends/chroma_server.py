"""Chroma's own server on loopback, as a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress

RUN = "from chromadb.cli.cli import app; app()"
PATIENCE_SECONDS = 90


class ChromaServer:
    """A server that keeps its files in `folder`.

    Attributes
    ----------
    host, port : str, int
    """

    def __init__(self, folder):
        self.folder, self.host = folder, "127.0.0.1"
        for _ in range(5):
            if self._start():
                return
            self.stop()
        raise RuntimeError("Chroma's server did not start")

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self):
        """Whether it answers: another process may have taken the port in the meantime."""
        with socket.socket() as free:
            free.bind((self.host, 0))
            self.port = free.getsockname()[1]
        where = ["--host", self.host, "--port", str(self.port), "--path", str(self.folder)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUN, "run", *where],
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        # It does not say when it listens.
        end = time.monotonic() + PATIENCE_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            with suppress(OSError), socket.create_connection((self.host, self.port), timeout=1):
                return True
            time.sleep(0.05)
        return False
