"""read_git: a small history told commit by commit, and what each commit is found to need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from memsift.errors import InvalidValue, MissingExtra
from memsift.evaluation.readers.git import read_git
from memsift.evaluation.trace import Stream


class Repository:
    """A repository whose commits are a minute apart, untouched by the user's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.minute = 0
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> None:
        person = {f"GIT_{who}_{what}": "a@example.org" if what == "EMAIL" else "A"
                  for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip
        moment = f"{1_700_000_000 + 60 * self.minute} +0000"
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        home = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        environment = os.environ | person | dates | home
        subprocess.run(["git", "-C", str(self.folder), *words], env=environment, check=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, message: str, **files: str) -> None:
        self.minute += 1
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message)

    def pad(self, count: int) -> None:
        """Commits that need nothing: each writes a file of its own."""
        for number in range(count):
            self.commit(f"pad {number}", **{f"pad{number}": f"padding {number}\n" * 3})


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


def read(repository: Repository, limit: int | None = None) -> Stream:
    (stream,) = read_git(repository.folder, limit=limit).streams
    return stream


def needs(stream: Stream, count: int) -> list[list[int]]:
    return [stream.need.of(query).tolist() for query in range(count)]


def test_a_commit_needs_those_that_last_touched_its_files(repository: Repository) -> None:
    repository.commit("write soup", soup="water\n")
    repository.commit("write bread", bread="flour\n")
    repository.commit("salt both", soup="water, salt\n", bread="flour, salt\n")
    repository.commit("pepper the soup", soup="water, salt, pepper\n")
    repository.commit("serve both", soup="hot\n", bread="warm\n")
    repository.pad(15)
    stream = read(repository)
    assert needs(stream, 6) == [[], [], [0, 1], [2], [2, 3], []]
    assert stream.asked.tolist() == list(range(20))  # each is asked just before it is stored


def test_a_renamed_file_is_needed_under_its_old_name(repository: Repository) -> None:
    repository.commit("draft", draft="a line\n" * 20)
    repository.commit("other", other="else\n")
    (repository.folder / "deep").mkdir()
    repository.git("mv", "draft", "deep/final")
    repository.commit("rename the draft")
    repository.write("deep/final", "a line\n" * 19 + "the end\n")
    repository.commit("finish")
    repository.commit("a new draft", draft="quite another text\n")  # the old name is free again
    repository.pad(15)
    assert needs(read(repository), 5) == [[], [], [0], [2], []]


def test_a_deletion_needs_the_file_and_a_file_made_anew_does_not(repository: Repository) -> None:
    repository.commit("make", file="one\n")
    (repository.folder / "file").unlink()
    repository.commit("delete")
    repository.commit("make again", file="different from before\n")
    repository.pad(17)
    assert needs(read(repository), 3) == [[], [0], []]


def test_merges_are_left_out_and_both_sides_stay(repository: Repository) -> None:
    repository.commit("base", base="0\n")
    repository.git("switch", "-q", "-c", "side")
    repository.commit("side work", side="1\n")
    repository.git("switch", "-q", "main")
    repository.commit("main work", base="2\n")
    repository.minute += 1
    repository.git("merge", "-q", "--no-ff", "-m", "the merge", "side")
    repository.commit("after the merge", base="3\n", side="3\n")
    repository.pad(16)
    stream = read(repository)
    assert stream.titles is not None
    assert stream.titles[:4] == ["base", "side work", "main work", "after the merge"]
    assert needs(stream, 4) == [[], [], [0], [1, 2]]


def test_odd_names_and_messages_come_through(repository: Repository) -> None:
    odd = "Zürich\n\"M\" 'A' file"
    repository.commit("Grüße\n\nA body,\nof two lines\n", **{odd: "1\n"})
    repository.commit("", **{odd: "2\n"})
    repository.commit("nothing changed")
    repository.commit("M", **{odd: "3\n"})  # a message that looks like a status
    repository.pad(16)
    texts = _Recorder()
    (stream,) = read_git(repository.folder, texts).streams
    memories, queries = texts.calls
    assert memories[0] == f"Grüße\n\nA body,\nof two lines\n{odd}"
    assert queries[:4] == ["Grüße\n\nA body,\nof two lines", "", "nothing changed", "M"]
    assert needs(stream, 4) == [[], [0], [], [1]]
    assert stream.titles is not None
    assert stream.titles[:2] == ["Grüße", ""]


def test_a_sweeping_commit_shows_few_paths_but_needs_all(repository: Repository) -> None:
    repository.pad(19)
    for number in range(19):
        repository.write(f"pad{number}", "reformatted\n")
    for number in range(100):
        repository.write(f"new{number}", f"{number} is new\n")
    repository.commit("sweep")
    stream = read(repository)
    assert stream.need.of(19).tolist() == list(range(19))
    assert stream.cost is not None
    assert stream.cost[19] == 1 + 40


def test_times_words_and_name(repository: Repository) -> None:
    repository.pad(20)
    trace = read_git(repository.folder)
    (stream,) = trace.streams
    assert (trace.name, trace.need, trace.score_from) == ("git:project", "evidence", 0.1)
    assert stream.created_at is not None
    assert stream.created_at[:2].tolist() == [1_700_000_060, 1_700_000_120]
    assert stream.cost is not None
    assert stream.cost[0] == 3  # pad 0 pad0


def test_limit_keeps_the_latest(repository: Repository) -> None:
    repository.pad(22)
    stream = read(repository, limit=20)
    assert stream.titles is not None
    assert stream.titles[0] == "pad 2"
    assert len(stream) == 20


def test_configuration_and_environment_change_nothing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("write", file="a line\n" * 20)
    repository.git("mv", "file", "moved")
    repository.commit("move")
    repository.pad(18)
    plain = read(repository)
    for setting in ("diff.renames=false", "log.showRoot=false", "color.ui=always",
                    "core.pager=false", "format.pretty=oneline", "log.showSignature=true",
                    "diff.orderFile=none", "log.decorate=full"):  # fmt: skip
        repository.git("config", *setting.split("="))
    monkeypatch.setenv("GIT_DIR", str(repository.folder / "nowhere"))
    configured = read(repository)
    assert needs(configured, 20) == needs(plain, 20)
    np.testing.assert_array_equal(configured.vectors, plain.vectors)


def test_a_path_that_looks_like_an_option_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Repository(Path("--help")).pad(20)
    assert read_git("--help").name == "git:--help"


def test_a_short_history_is_refused_with_its_length(repository: Repository) -> None:
    repository.pad(3)
    with pytest.raises(InvalidValue, match=r"20 or more commits.*has 3"):
        read_git(repository.folder)


def test_a_repository_without_commits_is_refused(repository: Repository) -> None:
    with pytest.raises(InvalidValue, match="must be in a git repository with commits"):
        read_git(repository.folder)


@pytest.mark.parametrize("name", [".", "absent"])
def test_what_is_no_repository_is_refused_in_words(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(InvalidValue, match=r"must be in a git repository.*git says: fatal"):
        read_git(tmp_path / name)


def test_other_arguments_are_checked() -> None:
    with pytest.raises(InvalidValue, match="limit of read_git must be 20 or more; got 5"):
        read_git(".", limit=5)
    with pytest.raises(InvalidValue, match="must not contain NUL"):
        read_git("a\0b")


def test_without_git_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match="needs the program `git`"):
        read_git(tmp_path)


class _Recorder:
    """An embedder that remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls.append(list(texts))
        return np.ones((len(texts), 2), np.float32)
