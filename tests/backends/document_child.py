"""A process that carries out a sift of documents and kills itself at its n-th step."""

from __future__ import annotations

import multiprocessing
import os
import signal
from importlib import import_module
from pathlib import Path

from memsift.backends import Sift, planfile
from memsift.backends.archive import ArchiveFile
from memsift.backends.chain import Chain
from memsift.backends.documents import DocumentSource
from memsift.backends.fields import Fields
from memsift.backends.sifting import unfinished
from memsift.policies import LruPolicy

BATCH = 3
STEPS = [
    (planfile, "write"),
    (planfile, "remove"),
    (Chain, "append"),
    (ArchiveFile, "__call__"),
    (ArchiveFile, "finish"),
]
# Every request is a step, and in Qdrant's local mode every single point that leaves its file.
INSIDE = {
    "qdrant": [("memsift.backends.qdrant", "QdrantSource", ("_read", "_delete"))],
    "chroma": [("memsift.backends.chroma", "ChromaSource", ("_read", "_delete"))],
    "qdrant+path": [
        ("memsift.backends.qdrant", "QdrantSource", ("_read", "_delete")),
        ("qdrant_client.local.persistence", "CollectionPersistence", ("delete",)),
    ],
    "chroma+path": [("memsift.backends.chroma", "ChromaSource", ("_read", "_delete"))],
}


def source_at(url: str) -> DocumentSource:
    room = import_module(f"memsift.backends.{url.partition(':')[0].partition('+')[0]}")
    return room.source_of_url(url, fields=Fields(tenant="tenant"), batch=BATCH)


def run(url: str, folder: Path, keep: int, last: int) -> None:
    """Begin a sift or go on with it; before and after each step, count, and die at number `last`."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    inside = [
        (getattr(import_module(module), owner), name)
        for module, owner, names in INSIDE[url.partition(":")[0]]
        for name in names
    ]
    for owner, name in [*STEPS, *inside]:
        setattr(owner, name, stepping(getattr(owner, name), step))
    source, chain = source_at(url), folder / "chain.memsift"
    if unfinished(chain):
        sift = Sift.resume(source, chain)
    else:
        plan = source.plan(LruPolicy(), keep)
        sift = Sift.begin(source, plan, chain, archive=folder / "gone.memsift", batch=BATCH)
    sift.run()
    source.close()


def stepping(method, step):
    def wrapped(*arguments, **options):
        step()
        done = method(*arguments, **options)
        step()
        return done

    return wrapped


def killed(url: str, folder: Path, keep: int, last: int) -> bool:
    """Whether the process died at that step; if not, the sift is done."""
    ways = multiprocessing.get_context("forkserver")
    # One that is not installed is passed over.
    ways.set_forkserver_preload([__name__, "memsift.backends.qdrant", "memsift.backends.chroma"])
    child = ways.Process(target=run, args=(url, folder, keep, last))
    child.start()
    child.join(timeout=100)
    assert child.exitcode in (0, -signal.SIGKILL), f"the child ended with {child.exitcode}"
    return child.exitcode != 0
