"""Any git repository as a trace: which earlier commits does the next one build on?"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from memsift.agent.embedders import Embedder, HashedNgrams
from memsift.errors import InvalidValue, MissingExtra
from memsift.evaluation.trace import Labels, Stream, Trace

_FEWEST_COMMITS = 20

# A commit that reformats a whole tree would otherwise be nothing but paths. Labels are not capped.
_PATHS_IN_TEXT = 40

# The reader's settings, whatever the user's or the repository's configuration says.
_CONFIG = (
    "log.showSignature=false",
    "log.showRoot=true",
    "core.quotepath=off",
    "core.fsmonitor=false",
)
_LOG = (
    "log", "-z", "--reverse", "--date-order", "--no-merges", "--name-status", "--find-renames",
    "--format=%H%x00%ct%x00%B", "--encoding=UTF-8", "--no-color", "--no-ext-diff",
    "--no-textconv", "--no-relative", "-O/dev/null",
)  # fmt: skip

# Set inside hooks, and stronger than `-C`.
_POINTS_ELSEWHERE = {
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
}  # fmt: skip

_STATUS = re.compile(r"[A-Z]\d*")


@dataclass(frozen=True)
class _Commit:
    time: float
    message: str
    # (path before, path after) of each file; they differ when the file was renamed.
    files: list[tuple[str, str]] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)


def read_git(
    path: str | os.PathLike[str], embedder: Embedder | None = None, limit: int | None = None
) -> Trace:
    """The history of a repository as one stream, merges left out.

    A memory is a commit: its message and the files that it touched. Before it is stored, its
    message alone is asked as a query: it needs, as evidence, the earlier commits that last touched
    its files (for a renamed file under the old name). A commit that touches new files only is asked
    without label.

    Parameters
    ----------
    path : path of a repository or of a folder in one
    embedder : Embedder, optional
        `HashedNgrams()` by default.
    limit : int, optional
        Only the latest so many commits, 20 or more; older ones count as if they had never been.

    Notes
    -----
    Commits come in order of time, parents always before children. `cost` is in words, `created_at`
    is the committer's time, titles are subject lines.
    """
    if limit is not None and limit < _FEWEST_COMMITS:
        raise InvalidValue(f"limit of read_git must be {_FEWEST_COMMITS} or more; got {limit!r}")
    commits = list(_parsed(_log_of(path, limit)))
    if len(commits) < _FEWEST_COMMITS:
        raise InvalidValue(
            f"path of read_git must have {_FEWEST_COMMITS} or more commits, merges not counted; "
            f"{os.fspath(path)!r} has {len(commits)}"
        )
    embedder = HashedNgrams() if embedder is None else embedder
    texts = [_text(commit) for commit in commits]
    stream = Stream(
        vectors=embedder.embed(texts),
        queries=embedder.embed([commit.message for commit in commits]),
        asked=np.arange(len(commits), dtype=np.int64),
        need=Labels.from_lists(_last_touched(commits)),
        cost=np.array([len(text.split()) for text in texts], np.int64),
        created_at=np.array([commit.time for commit in commits], np.float64),
        titles=[commit.message.partition("\n")[0] for commit in commits],
    )
    return Trace(f"git:{Path(path).resolve().name}", [stream], need="evidence", score_from=0.1)


def _log_of(path: str | os.PathLike[str], limit: int | None) -> str:
    """What `git log` says, as fields that end in NUL."""
    where = os.fspath(path)
    if "\0" in where:
        raise InvalidValue(f"path of read_git must not contain NUL; got {where!r}")
    settings = [word for setting in _CONFIG for word in ("-c", setting)]
    count = [] if limit is None else [f"--max-count={limit}"]
    environment = {k: v for k, v in os.environ.items() if k not in _POINTS_ELSEWHERE}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "--no-pager", "-C", where, *settings, *_LOG, *count, "HEAD", "--"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingExtra("read_git needs the program `git`; it is not on the PATH") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise InvalidValue(
            f"path of read_git must be in a git repository with commits; got {where!r}, "
            f"of which git says: {said}"
        )
    return done.stdout.decode(errors="replace")


def _parsed(log: str) -> Iterator[_Commit]:
    """The commits of a log: hash, time and message, then a status and one or two paths a file."""
    fields = iter(log.split("\0"))
    word = next(fields)
    while word:  # a commit's hash; the log ends in NUL, so its last field is empty
        time, message = next(fields), next(fields).strip()
        commit = _Commit(float(time) if time else math.nan, message)
        # git puts a newline before the first status. A hash is longer than any status.
        while _STATUS.fullmatch(word := next(fields).removeprefix("\n")):
            before = next(fields)
            after = next(fields) if word[0] in "RC" else before
            commit.files.append((before, after))
            if word == "D":
                commit.deleted.add(after)
        yield commit


def _text(commit: _Commit) -> str:
    shown = [after for _, after in commit.files[:_PATHS_IN_TEXT]]
    return "\n".join([commit.message, *shown])


def _last_touched(commits: list[_Commit]) -> list[list[int]]:
    """For each commit the earlier ones that last touched its files: ascending rows."""
    last: dict[str, int] = {}
    needed = []
    for row, commit in enumerate(commits):
        needed.append(sorted({last[before] for before, _ in commit.files if before in last}))
        for before, after in commit.files:
            if before != after:
                last.pop(before, None)
            last[after] = row
        for gone in commit.deleted:
            last.pop(gone, None)
    return needed
