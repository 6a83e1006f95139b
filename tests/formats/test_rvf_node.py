"""With the official tools, both ways. They come from npm, at the versions that `node/package-lock.json` pins."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvf_hand import HEADER, Hand, difference, full, segments, written

from memsift.formats.rvf import chain, read_rvf, write_rvf

SCRIPTS = Path(__file__).with_name("node")
OFFLINE = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONN",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ENOTCACHED",
)


class Node:
    """Runs the scripts beside an installation of the official packages."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder

    def __call__(self, script: str, *arguments: object) -> Any:
        given = [str(argument) for argument in arguments]
        done = subprocess.run(
            ["node", str(self.home / script), *given], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _json(self, name: str, value: object) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(value))
        return path

    def query(self, path: Path, queries: np.ndarray[Any, Any], k: int) -> Any:
        return self("query.mjs", path, self._json("queries.json", queries.tolist()), k)

    def change(self, path: Path, *steps: list[object]) -> Any:
        return self("change.mjs", path, self._json("steps.json", steps))


@pytest.fixture(scope="session")
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages, installed once into pytest's cache."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed; they run the official .rvf tools")
    lock = (SCRIPTS / "package-lock.json").read_bytes()
    name = f"rvf-node-{hashlib.sha256(lock).hexdigest()[:12]}"
    cache = getattr(request.config, "cache", None)
    folder = Path(cache.mkdir(name)) if cache else tmp_path_factory.mktemp(name)
    for path in SCRIPTS.iterdir():
        shutil.copy(path, folder)
    if not (folder / "installed").exists():
        install(folder)
        (folder / "installed").touch()
    if not list((folder / "node_modules" / "@ruvector").glob("rvf-node-*")):
        pytest.skip("the official .rvf reader has no build for this system")
    return folder


def install(folder: Path) -> None:
    """Without scripts, and with the lock's hashes. (`npm ci` wants builds that were never published.)"""
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm took more than two minutes to fetch the official .rvf tools")
    if done.returncode:
        said = done.stderr.strip()[:300]
        if any(code in said for code in OFFLINE):
            pytest.skip(f"npm could not reach its registry for the official .rvf tools: {said}")
        pytest.fail(f"npm could not install the official .rvf tools: {said}")


@pytest.fixture
def node(home: Path, tmp_path: Path) -> Node:
    return Node(home, tmp_path)


def unit(n: int, dim: int, seed: int) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def assert_brute_force(answers: Any, snapshot: Any, queries: np.ndarray[Any, Any], k: int) -> None:
    distances = 1 - queries.astype(np.float64) @ snapshot.vectors.astype(np.float64).T
    for answer, row in zip(answers, distances, strict=True):
        best = np.argsort(row)[:k]
        assert [hit["id"] for hit in answer] == snapshot.ids[best].tolist()
        np.testing.assert_allclose([hit["distance"] for hit in answer], row[best], atol=2e-6)


def test_the_official_reader_opens_and_searches_our_file(node, tmp_path, monkeypatch):
    from memsift.formats.rvf import vec

    monkeypatch.setattr(vec, "CHUNK", 20_000)  # several VEC segments
    snapshot, queries = full(300, dim=48), unit(5, 48, 7)
    path = tmp_path / "ours.rvf"
    write_rvf(path, snapshot)
    got = node.query(path, queries, 10)
    assert got["total"] == 300
    assert (got["dimension"], got["metric"], got["epoch"]) == (48, "cosine", 1)
    assert got["segments"].count("vec") == 3
    assert "unknown(0xF0)" in got["segments"]
    assert_brute_force(got["answers"], snapshot, queries, 10)
    assert difference(read_rvf(path), snapshot) is None, "looking changes nothing"


def test_an_empty_memory_opens_too(node, tmp_path):
    path = tmp_path / "empty.rvf"
    write_rvf(path, full(0, dim=3))
    got = node.query(path, unit(1, 3, 1), 5)
    assert (got["total"], got["answers"]) == (0, [[]])


def test_a_file_by_hand_is_what_the_official_tools_make_of_it(node, tmp_path):
    """The hand-made files of the other tests stand for real ones, so the real reader must agree."""
    hand = Hand(2).rows((1, (1, 0)), (2, (0, 1)), (3, (0.6, 0.8))).manifest()
    hand.rows((2, (0.8, 0.6))).journal([3]).manifest([3])
    path = hand.save(tmp_path)
    queries = np.array([[1, 0], [0, 1]], np.float32)
    assert_brute_force(node.query(path, queries, 5)["answers"], read_rvf(path), queries, 5)


@pytest.mark.parametrize("compacted", [False, True])
def test_what_the_official_tools_wrote_is_read(node, tmp_path, compacted):
    rows, path = unit(40, 6, 3), tmp_path / "theirs.rvf"
    again = unit(2, 6, 4)
    ids = list(range(100, 140))
    steps: list[list[object]] = [
        ["create", 6],
        ["ingest", ids[:25], rows[:25].tolist()],
        ["delete", [101, 103, 999]],
        ["reopen"],
        ["ingest", ids[25:], rows[25:].tolist()],
        ["ingest", [100, 105], again.tolist()],
        ["delete", [139]],
    ]
    if compacted:
        steps += [["compact"], ["reopen"], ["delete", [138]], ["compact"]]
    gone = {101, 103, 139} | ({138} if compacted else set())
    said = node.change(path, *steps)
    got = read_rvf(path)
    wanted = {id_: row for id_, row in zip(ids, rows, strict=True) if id_ not in gone}
    wanted |= {100: again[0], 105: again[1]}
    assert said["total"] == len(wanted) == len(got.ids)
    assert sorted(got.ids.tolist()) == sorted(wanted)
    for id_, row in zip(got.ids.tolist(), got.vectors, strict=True):
        assert row.tobytes() == wanted[id_].tobytes(), id_
    assert got.columns is None


@pytest.mark.parametrize("compacted", [False, True])
def test_our_file_changed_by_the_official_tools_keeps_what_we_know(node, tmp_path, compacted):
    snapshot, path = full(12, dim=4), tmp_path / "both.rvf"
    write_rvf(path, snapshot)
    first, second, *_ = snapshot.ids.tolist()
    fresh = unit(2, 4, 9)
    steps: list[list[object]] = [["delete", [first]], ["ingest", [1000, second], fresh.tolist()]]
    node.change(path, *steps, *([["compact"]] if compacted else []))
    got = read_rvf(path)
    rows = {id_: row for row, id_ in enumerate(got.ids.tolist())}
    assert sorted(rows) == sorted([*snapshot.ids.tolist()[1:], 1000])
    assert got.vectors[rows[second]].tobytes() == fresh[1].tobytes()
    for row, id_ in enumerate(snapshot.ids.tolist()):
        if id_ != first:
            assert got.columns["cost"][rows[id_]] == snapshot.columns["cost"][row]
            assert got.metadata[rows[id_]] == snapshot.metadata[row]
    assert got.columns["cost"][rows[1000]] == 1
    assert got.metadata[rows[1000]] is None
    assert (got.state, got.chain) == (snapshot.state, snapshot.chain)
    assert got.context.tobytes() == snapshot.context.tobytes()
    write_rvf(path, got)
    assert difference(read_rvf(path), got) is None


def test_compaction_alone_keeps_everything(node, tmp_path):
    snapshot, path = full(12, dim=4), tmp_path / "both.rvf"
    write_rvf(path, snapshot)
    node.change(path, ["compact"])
    got = read_rvf(path)
    order = np.argsort(got.ids)
    sorted_again = replace(
        got,
        ids=got.ids[order],
        vectors=got.vectors[order],
        columns={name: column[order] for name, column in got.columns.items()},
        metadata=[got.metadata[row] for row in order],
    )
    assert difference(sorted_again, snapshot) is None


def test_the_official_verifier_accepts_our_chain_and_no_other(node, tmp_path):
    bodies = [b'{"seq":%d,"time":%d}' % (seq, seq) for seq in range(20)]
    data = written(tmp_path, replace(full(), chain=bodies))
    [(at, _, length)] = [s for s in segments(data) if s[1] == 0xF5]
    good = data[at + HEADER + 64 : at + HEADER + length]
    swapped = good[:73] + good[146:219] + good[73:146] + good[219:]
    flipped = good[:700] + bytes([good[700] ^ 1]) + good[701:]
    named = {
        "good": good,
        "flipped": flipped,
        "swapped": swapped,
        "cut": good[:-1],
        "one": good[:73],
    }
    for name, content in named.items():
        (tmp_path / name).write_bytes(content)
    said = dict(zip(named, node("witness.mjs", *(tmp_path / n for n in named)), strict=True))
    assert said == {"good": 20, "flipped": -3, "swapped": -3, "cut": -2, "one": 1}
    assert {name: chain.verified(content) for name, content in named.items()} == {
        name: answer > 0 for name, answer in said.items()
    }
    assert struct.unpack_from("<Q", good, 19 * 73 + 64) == (19,)
