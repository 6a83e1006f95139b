"""Writing an .rvf file is whole or nothing, and reading one follows no link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from rvf_hand import difference, full, official

from memsift.errors import CorruptStore, InvalidValue
from memsift.formats.rvf import read_rvf, write_rvf

OLD, NEW = full(seed=1), full(seed=2)


def test_a_file_is_readable_by_its_owner_alone(tmp_path):
    path = tmp_path / "memory.rvf"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        write_rvf(path, NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def failing(name: str, times: int, error: int = errno.ENOSPC):
    """An `os` function that fails at its n-th call."""
    real, calls = getattr(os, name), []

    def stub(*args, **kwargs):
        calls.append(args)
        if len(calls) == times:
            raise OSError(error, os.strerror(error))
        return real(*args, **kwargs)

    return stub


def assert_old_file_is_alone(path: Path) -> None:
    assert difference(read_rvf(path), OLD) is None
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("call", [1, 2, 3, 8, 15, 25])
def test_a_full_disk_leaves_the_old_file_alone(tmp_path, monkeypatch, call):
    path = tmp_path / "memory.rvf"
    write_rvf(path, OLD)
    monkeypatch.setattr(os, "write", failing("write", call))
    with pytest.raises(OSError, match="No space"):
        write_rvf(path, NEW)
    monkeypatch.undo()
    assert_old_file_is_alone(path)
    write_rvf(path, NEW)
    assert difference(read_rvf(path), NEW) is None


def test_a_disk_that_takes_nothing_ends_the_write(tmp_path, monkeypatch):
    path = tmp_path / "memory.rvf"
    write_rvf(path, OLD)
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    with pytest.raises(OSError, match="took none"):
        write_rvf(path, NEW)
    monkeypatch.undo()
    assert_old_file_is_alone(path)


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_failing_sync_or_rename_leaves_the_old_file_alone(tmp_path, monkeypatch, name):
    path = tmp_path / "memory.rvf"
    write_rvf(path, OLD)
    monkeypatch.setattr(os, name, failing(name, 1, errno.EIO))
    with pytest.raises(OSError, match="rror"):
        write_rvf(path, NEW)
    monkeypatch.undo()
    assert_old_file_is_alone(path)


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def stop(fd, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        write_rvf(tmp_path / "memory.rvf", NEW)
    assert not list(tmp_path.iterdir())


def test_short_writes_are_carried_on(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    write_rvf(tmp_path / "memory.rvf", NEW)
    assert difference(read_rvf(tmp_path / "memory.rvf"), NEW) is None


def test_the_file_is_synced_before_it_is_named_and_the_folder_after(tmp_path, monkeypatch):
    steps: list[str] = []
    flags: list[int] = []
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace")}

    def opening(path, how, *args, **kwargs):
        flags.append(how)
        return real["open"](path, how, *args, **kwargs)

    def syncing(fd):
        steps.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        return real["fsync"](fd)

    def renaming(source, target):
        assert Path(source).parent == Path(target).parent
        steps.append("rename")
        return real["replace"](source, target)

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", renaming)
    write_rvf(tmp_path / "memory.rvf", NEW)
    assert steps == ["file", "rename", "folder"]
    assert flags[0] & os.O_EXCL
    assert flags[0] & os.O_CREAT
    flags.clear()
    read_rvf(tmp_path / "memory.rvf")
    assert flags[0] & os.O_ACCMODE == os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_CLOEXEC"):
        assert flags[0] & getattr(os, name, 0) == getattr(os, name, 0)


def test_no_link_is_followed(tmp_path):
    real = official().save(tmp_path)
    before = real.read_bytes()
    link = tmp_path / "link.rvf"
    link.symlink_to(real)
    with pytest.raises(CorruptStore, match="symbolic link"):
        read_rvf(link)
    with pytest.raises(InvalidValue, match="path"):
        write_rvf(link, NEW)
    assert real.read_bytes() == before
    (tmp_path / "dangling.rvf").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CorruptStore, match="symbolic link"):
        read_rvf(tmp_path / "dangling.rvf")


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.rvf")  # must not wait for a writer either
    (tmp_path / "folder.rvf").mkdir()
    for name in ("pipe.rvf", "folder.rvf", "/dev/zero"):
        with pytest.raises(CorruptStore, match="regular file"):
            read_rvf(tmp_path / name)
        with pytest.raises(InvalidValue, match="path"):
            write_rvf(tmp_path / name, NEW)
    with pytest.raises(FileNotFoundError):
        read_rvf(tmp_path / "absent.rvf")


def test_reading_changes_nothing_and_closes_the_file(tmp_path):
    path = official().save(tmp_path)
    path.chmod(0o400)
    before = path.read_bytes(), path.stat().st_mtime_ns
    fds = Path("/proc/self/fd")
    count = len(list(fds.iterdir())) if fds.exists() else 0
    for _ in range(3):
        read_rvf(path)
    (tmp_path / "bad.rvf").write_bytes(before[0][:100])
    for name in ("bad.rvf", "."):
        with pytest.raises(CorruptStore):
            read_rvf(tmp_path / name)
    assert (len(list(fds.iterdir())) if fds.exists() else 0) == count
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_file_that_shrinks_while_it_is_read_is_corrupt(tmp_path, monkeypatch):
    path = official().save(tmp_path)
    data = path.read_bytes()
    real = os.fstat

    def larger(fd):
        os.truncate(path, len(data) // 2)
        return os.stat_result([*real(fd)[:6], len(data), *real(fd)[7:]])

    monkeypatch.setattr(os, "fstat", larger)
    with pytest.raises(CorruptStore, match="shrank"):
        read_rvf(path)
