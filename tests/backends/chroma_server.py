"""Chroma's own server on loopback, as a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

RUN = "from chromadb.cli.cli import app; app()"


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
        self._reader.join()
        self._process.stdout.close()

    def _start(self):
        """Whether it listens: another process may have taken the port in the meantime."""
        with socket.socket() as free:
            free.bind((self.host, 0))
            self.port = free.getsockname()[1]
        where = ["--host", self.host, "--port", str(self.port), "--path", str(self.folder)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUN, "run", *where],
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
        )
        found = any(b"listening" in line for line in self._process.stdout)
        # It writes a line for each request, and would wait once the pipe is full.
        self._reader = threading.Thread(target=self._process.stdout.read)
        self._reader.start()
        return found
