"""Several processes with one memory, and processes that die: nothing twice, nothing half, nothing lost."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bag import Bag, facts, opened

from durable.crash.points import Kill, arm
from memsift import FifoPolicy

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

WRITER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:2]
from bag import facts, opened
number = int(sys.argv[3])
with opened(Path(sys.argv[2]), busy_timeout=60.0) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(0, 60, 6):
        found = memory.remember_many(facts(4, start), metadata=[{"by": number}] * 4)
        found += [memory.remember(text) for text in facts(2, start + 4)]
        print(*(f"{one.id}:{one.added:d}" for one in found), flush=True)
        memory.recall(facts(1, start)[0], 2)
"""


def test_the_same_texts_by_four_processes_are_there_once(tmp_path: Path) -> None:
    """The check for repeats is part of the write: who comes second finds what the first one wrote."""
    opened(tmp_path).close()
    here = str(Path(__file__).parent)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, here, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        said.append([pair.split(":") for pair in out.split()])
    ids = [[int(id_) for id_, _ in told] for told in said]
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert sum(int(added) for told in said for _, added in told) == 60
    with opened(tmp_path) as memory:
        assert sorted(text for _, text in memory.store.texts.all()) == sorted(facts(60))
        # Every repeat counted as an access, and so did every recall.
        total = sum(one.access_count for one in memory.get(range(60)) if one)
        assert total == 3 * 60 + 4 * 10 * 2
        assert memory.store.verify().ok


def in_child(work: Callable[[], object]) -> int:
    """How a child that does this ends."""
    gc.collect()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return status


KILLS = [
    (point, when)
    for point in (
        "vector insert",
        "entry insert",
        "text insert",
        "state update",
        "change insert",
        "commit",
    )
    for when in ("before", "after", "amid")
    if when != "amid" or point in ("vector insert", "text insert")
]


@pytest.mark.parametrize(("point", "when"), KILLS)
def test_a_kill_amid_a_batch_leaves_all_or_nothing(tmp_path: Path, point: str, when: str) -> None:
    options = {"budget": 40, "policy": FifoPolicy()}
    with opened(tmp_path, **options) as memory:
        memory.remember_many(facts(20))
        memory.close()

    def child() -> None:
        arm(Kill(point, when, 2 if point == "state update" else 1))
        with opened(tmp_path, **options) as memory:
            # Some are known, some make others leave, one takes another's place.
            memory.remember_many(facts(40, 10))
            memory.remember("the very last word", supersedes=19)

    status = in_child(child)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    with opened(tmp_path, **options) as memory:
        assert memory.store.verify().ok
        texts = dict(memory.store.texts.all())
        assert list(texts) == list(range(len(texts)))
        whole = [facts(20), facts(50), [*facts(50), "the very last word"]]
        assert list(texts.values()) in whole
        counts = [one.access_count for one in memory.get(range(10, 20)) if one]
        assert counts == [int(len(texts) > 20)] * 10
        assert memory.store.archived().size == (0 if len(texts) == 20 else len(texts) - len(memory))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "point", ["begin", "vector update", "entry update", "state update", "commit"]
)
def test_a_kill_amid_a_reembedding_leaves_one_or_the_other(
    tmp_path: Path, point: str, when: str
) -> None:
    with opened(tmp_path) as memory:
        memory.remember_many(facts(20))

    def child() -> None:
        new = Bag(32)
        # The opening writes as well: what is counted begins once the texts are embedded.
        arm(Kill(point, when, 1), ready=lambda: bool(new.asked))
        with opened(tmp_path) as memory:
            memory.reembed(new)

    status = in_child(child)
    assert os.WIFSIGNALED(status)
    old = not (point == "commit" and when == "after")
    with opened(tmp_path, embedder=Bag(256 if old else 32)) as memory:
        assert memory.store.verify().ok
        assert memory.recall(facts(20)[13], 1)[0].id == 13
        assert memory.store.ids().tolist() == list(range(20))
