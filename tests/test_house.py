"""The house: who may import whom, what comes in from outside, and what may never be called."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memsift

PACKAGE = Path(memsift.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# From the ground up. A file imports from its own line or the lines above; a new file takes a place here.
LINES: list[tuple[str, str]] = [
    ("ground", "errors types vectors checks budget kernels neighbours sketch context upkeep"),
    (
        "what is held",
        "accesslog view planes columns snapshots order entries table similarity clusters crowding impressions "
        "index admission formats",
    ),
    ("what is thought", "learning signals policies selection regret plan planprint audit"),
    (
        "where it meets",
        "allowance ghosts lessons footprint leaving memory storage store durable background exchange reference",
    ),
    ("neighbours", "agent backends adapters evaluation testing"),
    ("doors", "cli server __init__ __main__"),
]
RANK = {name: rank for rank, (_, names) in enumerate(LINES) for name in names.split()}
# What is thought sees the view only: of what is held, nothing else.
THOUGHT = [name for name, _ in LINES].index("what is thought")
HELD_BUT_UNSEEN = {
    "table",
    "similarity",
    "clusters",
    "crowding",
    "impressions",
    "planes",
    "index",
    "admission",
    "formats",
}

# Looks upwards that are known; none may be added without a reason, and one that is gone leaves the list.
UPWARD: dict[str, set[str]] = {}

# Each third-party package but numpy, and the rooms that may open its box.
THIRD_PARTY = {
    "numpy": [""],
    "matplotlib": ["evaluation/report"],
    # Opponents of the speed table.
    "apsw": ["evaluation/speed/engines"],
    "chromadb": ["evaluation/speed/engines", "backends/chroma"],
    "faiss": ["evaluation/speed/engines"],
    "sqlite_vec": ["evaluation/speed/engines"],
    "rich": [
        "evaluation/report",
        "evaluation/parity",
        "evaluation/tables",
        "evaluation/story",
        "cli",
    ],
    "click": ["cli"],
    "pytest": ["testing"],
    "hypothesis": ["testing"],
    "cryptography": ["audit"],
    "rustworkx": ["signals/graph"],
    "hnswlib": ["index/hnsw", "evaluation/speed/engines"],
    "numkong": ["planes/integers"],
    "usearch": ["index/hnsw", "evaluation/speed/engines"],
    "mcp": ["server/mcp"],
    "mcp_types": ["server/mcp"],
    "pydantic": ["server/mcp"],
    "anyio": ["server"],
    "starlette": ["server"],
    "uvicorn": ["server/http"],
    "tokenizers": ["agent/embedders"],
    "safetensors": ["agent/embedders"],
    "langgraph": ["adapters/langgraph"],
    "langchain_core": ["adapters/langchain"],
    "google": ["adapters/adk"],
    "onnxruntime": ["agent/embedders"],
    "sentence_transformers": ["agent/embedders"],
    "psycopg": ["backends/pgvector"],
    "qdrant_client": ["backends/qdrant"],
    "grpc": ["backends/qdrant/connection"],
    "httpx": ["backends/qdrant/connection", "backends/chroma/connection"],
}

# Longer than the rest, each for a reason.
LONG = {
    "store.py": "the public class: half of it is docstrings",
    "memory.py": "every way in which a memory changes",
    "durable.py": "the same class over a file: transactions, archive, restore, erase",
    "agent/memory.py": "the public class: half of it is docstrings",
    "storage/journal.py": "one transaction's whole life",
    "ghosts.py": "what happens to a ghost, from its eviction to its figures",
    "view.py": "every column and every question that a policy may ask",
}
LONGEST = 350

NEVER_IMPORTED = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "yaml",
    "jsonpickle",
}
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}


def place(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def room(file: Path) -> str:
    """The first part of a file's path: the room or the file on the ground floor."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Modules that a file imports anywhere, also within functions and under TYPE_CHECKING."""
    package = ["memsift", *file.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "memsift":
                yield from ((f"memsift.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno


def own_imports(file: Path) -> Iterator[tuple[str, int]]:
    """Rooms of this package that a file imports from."""
    for module, line in imports(file):
        parts = module.split(".")
        if parts[0] == "memsift":
            named = parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"
            yield named, line


every_file = pytest.mark.parametrize("file", FILES, ids=place)


@every_file
def test_a_file_has_a_place_in_the_house(file: Path) -> None:
    assert room(file) in RANK, f"{place(file)} is on no line of LINES"


@every_file
def test_a_file_imports_from_its_own_line_or_the_lines_above(file: Path) -> None:
    rank, known = RANK.get(room(file), len(LINES)), UPWARD.get(place(file), set())
    found = [(name, line) for name, line in own_imports(file) if RANK[name] > rank]
    assert [f"line {line}: {name}" for name, line in found if name not in known] == []
    assert known == {name for name, _ in found}, (
        "a known look upwards is gone: take it off the list"
    )


@pytest.mark.parametrize("file", [f for f in FILES if RANK.get(room(f)) == THOUGHT], ids=place)
def test_what_is_thought_sees_the_view_only(file: Path) -> None:
    seen = {name for name, _ in own_imports(file)}
    assert seen & HELD_BUT_UNSEEN == set()


@every_file
def test_third_party_packages_stay_in_their_rooms(file: Path) -> None:
    known = sys.stdlib_module_names | {"memsift"}
    for module, line in imports(file):
        top = module.split(".")[0]
        if top not in known:
            rooms = THIRD_PARTY.get(top, [])
            assert any(place(file).startswith(r) for r in rooms), f"line {line}: {module}"


@every_file
def test_nothing_runs_code_that_it_reads(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else None
            assert called not in NEVER_CALLED, f"line {node.lineno}"
            for keyword in node.keywords:
                allowed = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                assert keyword.arg != "allow_pickle" or allowed, f"line {node.lineno}"
                assert not (keyword.arg == "shell" and getattr(keyword.value, "value", True)), (
                    f"line {node.lineno}"
                )
    tops = {module.split(".")[0] for module, _ in imports(file)}
    assert tops & NEVER_IMPORTED == set()


@every_file
def test_a_file_can_be_read_in_one_sitting(file: Path) -> None:
    length = len(file.read_text().splitlines())
    assert length <= LONGEST or place(file) in LONG, f"{length} lines"


def test_no_exception_outlives_its_reason() -> None:
    """Files that are listed as long are there, and are long."""
    lengths = {place(f): len(f.read_text().splitlines()) for f in FILES}
    assert [name for name in LONG if lengths.get(name, 0) <= LONGEST] == []


@pytest.mark.parametrize("name", memsift.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(memsift, name)
    text = inspect.getdoc(thing)
    assert text
    inherited = inspect.isclass(thing) and thing.__doc__ is None
    generated = text.startswith(f"{name}(")  # what a dataclass without a docstring says
    assert not inherited
    assert not generated
    assert text.splitlines()[0].rstrip().endswith((".", ":", ";", ",")) or len(text) > 40


@pytest.mark.parametrize("name", ["Budget", "MemoryStore", "MemoryView", "Plan"])
def test_every_method_says_what_it_does(name: str) -> None:
    cls = getattr(memsift, name)
    silent = [
        attribute
        for attribute, value in vars(cls).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod)))
        and not inspect.getdoc(
            getattr(cls, attribute) if not isinstance(value, property) else value
        )
    ]
    assert silent == []


def test_the_architecture_page_draws_the_same_house() -> None:
    page = PACKAGE.parents[1] / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("an installed package has no ARCHITECTURE.md beside it")
    drawn = {}
    for row in re.findall(r"^\|([^|]+)\|([^|]+)\|[^|]+\|$", page.read_text(), re.MULTILINE):
        for name in re.findall(r"`(\w+)/?`", row[1]):
            drawn[name] = row[0].strip()
    assert drawn
    assert drawn == {name: LINES[RANK[name]][0] for name in drawn}


def test_public_names_are_sorted_and_real() -> None:
    assert memsift.__all__ == sorted(memsift.__all__)
    assert [name for name in memsift.__all__ if not hasattr(memsift, name)] == []


# ---- what an import brings in --------------------------------------------------------------------

PROBE = """
import sys
import numpy, json, sqlite3, hashlib, dataclasses, typing
before = set(sys.modules)
import memsift
print(*sorted(set(sys.modules) - before))
"""


def test_an_import_needs_numpy_alone_and_little_of_it() -> None:
    """What an import costs is what it brings in; a clock would tell of the machine."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=True
    )
    brought = done.stdout.split()
    tops = {name.split(".")[0] for name in brought}
    assert tops - sys.stdlib_module_names - {"memsift", "numpy"} == set()
    assert len([name for name in brought if not name.startswith("memsift")]) <= 20
    own = {name.split(".")[1] for name in brought if name.startswith("memsift.")}
    assert (
        own & {"agent", "backends", "adapters", "evaluation", "testing", "cli", "server"} == set()
    )


def test_a_store_works_without_any_extra() -> None:
    """With every other third-party package out of reach, a memory still forgets."""
    blocked = sorted(set(THIRD_PARTY) - {"numpy"})
    code = (
        f"import sys\nfor name in {blocked}:\n    sys.modules[name] = None\n"
        "import memsift\n"
        "store = memsift.MemoryStore(2, budget=3, policy=memsift.CoherencePolicy())\n"
        "store.add_many([[1, 0], [0, 1], [1, 1], [1, 2]])\n"
        "print(store.search([1, 1], k=1)[0].id, len(store), store.plan(1))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.startswith("2 3 Plan: evict 2 of 3")
