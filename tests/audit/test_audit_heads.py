"""Heads as notes, keys in files, changes of keys."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from audit_logs import KEY, STORE, Log, change, honest_log

from memsift.audit import (
    Head,
    InvalidHead,
    InvalidKey,
    KeyHistory,
    Record,
    SignedHead,
    generate_key,
    heads,
    keys,
    link,
    load_key,
    rotation,
    verify,
)
from memsift.errors import MissingExtra

HEAD = Head("store-1", 1204, bytes(range(32)).hex(), 1_764_000_000_000_000_000)
TEXT = (
    "memsift.audit/store-1\n1204\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    "time 1764000000000000000\n"
)


@pytest.fixture(name="signer")
def _signer(tmp_path):
    pytest.importorskip("cryptography")
    generate_key(tmp_path / "signer.pem")
    return load_key(tmp_path / "signer.pem")


def fresh_key():
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    return ed25519.Ed25519PrivateKey.generate()


# Heads without a signature need no extra.


def test_a_head_is_four_lines():
    assert str(HEAD) == TEXT
    assert Head.parse(TEXT) == HEAD


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[:-1],
        TEXT + "\n",
        TEXT + "more\n",
        " " + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("1204", "01204"),
        TEXT.replace("1204", "-1"),
        TEXT.replace("1204", "1e3"),
        TEXT.replace("1204", "1" * 20),
        TEXT.replace("1204", "\u0661\u0662"),
        TEXT.replace("Hh8=", "Hh9="),
        TEXT.replace("Hh8=", "Hh8"),
        TEXT.replace("AAEC", "AA-C"),
        TEXT.replace("AAEC", ""),
        TEXT.replace("store-1", "store 1"),
        TEXT.replace("store-1", "store/1"),
        TEXT.replace("store-1", "x" * 65),
        TEXT.replace("store-1", ".x"),
        TEXT.replace("memsift.audit", "example.com"),
        TEXT.replace("time ", ""),
        TEXT.replace("time ", "time  "),
        TEXT + "key 0123456789abcdef\n",
        TEXT * 2,
        "x" * 100_000,
        b"bytes",
        None,
    ],
)
def test_other_text_is_no_head(text):
    with pytest.raises(InvalidHead):
        Head.parse(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seq", -1), ("seq", 1.0), ("seq", True), ("hash", "0" * 63), ("hash", None), ("time", 1.5)],
)
def test_a_wrong_field_of_a_head_is_refused(name, value):
    with pytest.raises(InvalidHead, match=name):
        replace(HEAD, **{name: value})


def test_without_the_extra_the_message_says_what_to_install(monkeypatch, tmp_path):
    for name in [n for n in sys.modules if n.split(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    path = tmp_path / "key.pem"
    for call in (
        lambda: generate_key(path),
        lambda: load_key(path),
        lambda: heads.sign(HEAD, None),
        lambda: keys.is_signed(bytes(32), bytes(64), b""),
    ):
        with pytest.raises(MissingExtra, match=r"pip install 'memsift\[sign\]'"):
            call()
    assert not path.exists()
    assert Head.parse(TEXT) == HEAD


# Signed heads.


def test_a_signed_head_there_and_back(signer):
    public = keys.public_key(signer)
    signed = heads.sign(HEAD, signer)
    assert signed.key_id == hashlib.sha256(public).hexdigest()[:16] == keys.key_id(public)
    text = str(signed)
    assert SignedHead.parse(text) == signed
    assert str(SignedHead.parse(text)) == text
    assert heads.check(SignedHead.parse(text), public) == HEAD
    assert text.startswith(TEXT + f"key {signed.key_id}\n\n\u2014 memsift.audit/store-1 ")


def test_it_is_a_c2sp_note(signer):
    """Checked by the words of the specification, not by our own reader."""
    public = keys.public_key(signer)
    body, _, lines = str(heads.sign(HEAD, signer)).rpartition("\n\n")
    dash, name, blob = lines.rstrip("\n").split(" ")
    raw = base64.b64decode(blob)
    assert (dash, name) == ("—", body.split("\n")[0])
    assert raw[:4] == hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    signer.public_key().verify(raw[4:], (body + "\n").encode())


def test_a_witness_s_signature_is_passed_over(signer):
    signed = heads.sign(HEAD, signer)
    witnessed = (
        str(signed) + "\u2014 witness.example/w1 " + base64.b64encode(b"w" * 76).decode() + "\n"
    )
    assert SignedHead.parse(witnessed) == signed


def test_every_change_of_a_signed_head_is_refused(signer):
    public, rng = keys.public_key(signer), random.Random(1)
    text = str(heads.sign(HEAD, signer))
    for at in range(len(text)):
        for new in {rng.choice("0123456789abcdefXYZ+/= \n"), chr(ord(text[at]) ^ 1), ""} - {
            text[at]
        }:
            with pytest.raises(InvalidHead):
                heads.check(SignedHead.parse(text[:at] + new + text[at + 1 :]), public)


def test_another_key_or_store_or_head_does_not_pass(signer):
    signed, public = heads.sign(HEAD, signer), keys.public_key(signer)
    other = fresh_key()
    with pytest.raises(InvalidHead, match="must be signed by key"):
        heads.check(signed, keys.public_key(other))
    with pytest.raises(InvalidHead, match="must be signed by key"):
        heads.check(heads.sign(HEAD, other), public)
    for forged in (
        replace(signed, head=replace(HEAD, seq=5)),
        replace(signed, head=replace(HEAD, store_id="store-2")),
        replace(signed, head=replace(HEAD, time=5)),
        replace(heads.sign(HEAD, other), key_id=signed.key_id),
        replace(signed, signature=bytes(68)),
        replace(signed, signature=b""),
    ):
        with pytest.raises(InvalidHead, match="signature"):
            heads.check(forged, public)
    with pytest.raises(InvalidKey, match="32 bytes"):
        heads.check(signed, public[:31])


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t.partition("\n\n")[0] + "\n",
        lambda t: t.partition("\n\n")[0] + "\n\n",
        lambda t: t + t.rpartition("\n\n")[2],
        lambda t: t + "no signature\n",
        lambda t: t.replace("key ", "kez "),
        lambda t: t.replace("\u2014", "-"),
        lambda t: t[:-6] + "\n",
        lambda t: t.rstrip("\n"),
        lambda t: "",
        lambda t: None,
        lambda t: t + "\u2014 w " + "A" * 70_000 + "\n",
    ],
)
def test_a_damaged_note_is_no_signed_head(signer, damage):
    with pytest.raises(InvalidHead):
        SignedHead.parse(damage(str(heads.sign(HEAD, signer))))


# Keys in files.

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX files")


@posix
def test_a_key_file_is_for_its_owner_and_never_overwritten(tmp_path):
    pytest.importorskip("cryptography")
    path = tmp_path / "signer.pem"
    old = os.umask(0)
    try:
        public = generate_key(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert keys.public_key(load_key(path)) == public
    before = path.read_bytes()
    with pytest.raises(InvalidKey, match="never overwritten"):
        generate_key(path)
    assert path.read_bytes() == before
    (tmp_path / "link.pem").symlink_to(tmp_path / "elsewhere.pem")
    with pytest.raises(InvalidKey):
        generate_key(tmp_path / "link.pem")
    assert not (tmp_path / "elsewhere.pem").exists()
    with pytest.raises(InvalidKey, match="cannot be made"):
        generate_key(tmp_path / "nowhere" / "signer.pem")


def test_a_key_that_could_not_be_written_leaves_no_file(tmp_path, monkeypatch):
    pytest.importorskip("cryptography")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        generate_key(tmp_path / "signer.pem")
    assert list(tmp_path.iterdir()) == []


def test_a_key_does_not_lie_beside_its_store(tmp_path):
    pytest.importorskip("cryptography")
    home, away = tmp_path / "store", tmp_path / "keys"
    (home / "below").mkdir(parents=True)
    away.mkdir()
    (tmp_path / "alias").symlink_to(home)
    store = home / "agent.memsift"
    for path in (home / "k.pem", home / "below" / "k.pem", tmp_path / "alias" / "k.pem"):
        for named in (store, home, tmp_path / "alias" / "agent.memsift"):
            with pytest.raises(InvalidKey, match="outside the store's directory"):
                generate_key(path, store=named)
        assert not path.exists()
    generate_key(away / "k.pem", store=store)
    generate_key(home / "k.pem", store=store, beside_store=True)
    assert load_key(home / "k.pem")


@posix
def test_bad_key_files_are_refused_and_not_shown(tmp_path):
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, x25519

    def pem(key, encryption=None):
        encryption = encryption or form.NoEncryption()
        return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)

    good = pem(fresh_key())
    bad = {
        "empty": b"",
        "text": b"SECRET-IN-THE-WRONG-FILE",
        "cut": good[:60],
        "edited": good.replace(good[40:44], b"AAAA"),
        "raw": bytes(32),
        "large": good + b"\n" * 5000,
        "curve": pem(ec.generate_private_key(ec.SECP256R1())),
        "exchange": pem(x25519.X25519PrivateKey.generate()),
        "locked": pem(fresh_key(), form.BestAvailableEncryption(b"word")),
    }
    for name, content in bad.items():
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(InvalidKey, match=name) as caught:
            load_key(path)
        assert "SECRET" not in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__
    path = tmp_path / "good"
    path.write_bytes(good)
    for mode in (0o640, 0o604, 0o644, 0o660):
        path.chmod(mode)
        with pytest.raises(InvalidKey, match="owner only"):
            load_key(path)
    path.chmod(0o400)
    assert load_key(path)
    with pytest.raises(InvalidKey, match="cannot be read"):
        load_key(tmp_path / "absent")
    with pytest.raises(InvalidKey, match="regular file"):
        load_key(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe", 0o600)
        with pytest.raises(InvalidKey, match="regular file"):
            load_key(tmp_path / "pipe")
    with pytest.raises(InvalidKey, match="Ed25519 private key"):
        heads.sign(HEAD, ec.generate_private_key(ec.SECP256R1()))


# Changes of keys.


def key_record(previous, new, old=None, store_id=STORE) -> Record:
    after = change(random.Random(0), previous, store_id).after
    note = rotation.key_note(previous, store_id, new, old)
    return link(previous, store_id, kind="key", time=1.0, before=after, after=after, note=note)


def rotated(rng, pool) -> tuple[Log, list[tuple[int, object]]]:
    """A log whose heads are signed by one key after the other, with the record from which each counts."""
    records = [key_record(None, pool[0])]
    epochs = [(0, pool[0])]
    for old, new in pairwise(pool):
        for _ in range(rng.randrange(4)):
            records.append(change(rng, records[-1]))
        records.append(key_record(records[-1], new, old))
        epochs.append((records[-1].seq, new))
    records.append(change(rng, records[-1]))
    last = records[-1]
    return Log(records, Head(STORE, last.seq, last.hash, 0)), epochs


@pytest.fixture(name="pool", scope="module")
def _pool():
    return [fresh_key() for _ in range(4)]


def test_keys_are_followed_from_the_first_to_the_last(pool):
    rng = random.Random(2)
    for trial in range(40):
        log, epochs = rotated(rng, pool[: 1 + trial % 4])
        first, last = keys.public_key(epochs[0][1]), keys.public_key(epochs[-1][1])
        history = rotation.follow(log.records, STORE, first)
        assert history == KeyHistory(tuple((seq, keys.public_key(k)) for seq, k in epochs))
        signed = heads.sign(log.head, epochs[-1][1])
        head = heads.check(SignedHead.parse(str(signed)), history)
        assert verify(log.bodies, STORE, head).status == "ok"
        # The key records alone are enough, and a holder of the newest key needs nothing before it.
        only_keys = [r for r in log.records if r.kind == "key"]
        assert rotation.follow(only_keys, STORE, first) == history
        assert rotation.follow(log.records, STORE, last).at(log.head.seq) == last


def test_a_head_counts_only_under_the_key_of_its_time(pool):
    log, epochs = rotated(random.Random(3), pool)
    history = rotation.follow(log.records, STORE, keys.public_key(pool[0]))
    for record in log.records:
        head = Head(STORE, record.seq, record.hash, 0)
        due = [k for seq, k in epochs if seq <= record.seq][-1]
        for key in pool:
            if key is due:
                assert heads.check(heads.sign(head, key), history) == head
            else:
                with pytest.raises(InvalidHead, match="must be signed by key"):
                    heads.check(heads.sign(head, key), history)
    late = rotation.follow(log.records, STORE, keys.public_key(pool[2]))
    first = Head(STORE, 1, log.records[0].hash, 0)
    with pytest.raises(InvalidHead, match="no trusted key was in force"):
        heads.check(heads.sign(first, pool[2]), late)


def test_forged_changes_of_keys_are_refused(pool):
    log, _ = rotated(random.Random(4), pool[:2])
    first, last = keys.public_key(pool[0]), log.records[-1]
    thief = fresh_key()
    honest = key_record(last, thief, pool[1])
    other_place = log.records[0]
    forgeries = {
        "only the new key signs": key_record(last, thief),
        "signed by a key that is not the last": key_record(last, thief, pool[0]),
        "signed by a stranger": key_record(last, thief, fresh_key()),
        "old signature replaced": replace(honest, note={**honest.note, "old_signature": "0" * 128}),
        "new signature replaced": replace(honest, note={**honest.note, "signature": "0" * 128}),
        "new key replaced": replace(
            honest,
            note={**honest.note, "public_key": first.hex(), "key_id": keys.key_id(first)},
        ),
        "id of another key": replace(honest, note={**honest.note, "key_id": "0" * 16}),
        "id of another old key": replace(honest, note={**honest.note, "old_key_id": "0" * 16}),
        "from another place": replace(honest, seq=last.seq + 2),
        "from another chain": replace(honest, prev=other_place.hash),
        "from another store": key_record(last, thief, pool[1], "other"),
    }
    for name, record in forgeries.items():
        with pytest.raises(InvalidKey, match="must be signed by key"):
            rotation.follow([*log.records, record], STORE, first)
        assert name
    shapes = [
        {"key_id": "0" * 16},
        {k: v for k, v in honest.note.items() if k != "old_key_id"},
        {**honest.note, "more": 1},
        {**honest.note, "public_key": "abc"},
        {**honest.note, "signature": 5},
        {**honest.note, "public_key": "00"},
    ]
    for note in shapes:
        with pytest.raises(InvalidKey):
            rotation.follow([*log.records, replace(honest, note=note)], STORE, first)
    with pytest.raises(InvalidKey, match="another key"):
        rotation.key_note(last, STORE, pool[0], pool[0])
    with pytest.raises(InvalidKey):
        rotation.follow(log.records, STORE, b"short")


def test_a_retired_key_cannot_come_back_by_itself(pool):
    """Whoever stole the first key cannot undo the change to the second."""
    log, _ = rotated(random.Random(5), pool[:2])
    again = key_record(log.records[-1], pool[0])
    with pytest.raises(InvalidKey):
        rotation.follow([*log.records, again], STORE, keys.public_key(pool[0]))
    # Nor by a record that only claims to introduce it, in a log that never introduced it.
    claim = replace(again, note={**again.note, "signature": "0" * 128})
    with pytest.raises(InvalidKey):
        rotation.follow([*log.records[1:], claim], STORE, keys.public_key(pool[0]))
    back = key_record(log.records[-1], pool[0], pool[1])
    history = rotation.follow([*log.records, back], STORE, keys.public_key(pool[0]))
    assert history.at(back.seq) == keys.public_key(pool[0])
    assert history.at(back.seq - 1) == keys.public_key(pool[1])


def test_forty_honest_logs_with_prunes_and_changes_of_keys(pool):
    rng = random.Random(6)
    for _ in range(40):
        log = honest_log(rng, rng.randrange(4, 12), prunes=2)
        last = log.records[-1]
        introduced = key_record(last, pool[0])
        changed = key_record(change(rng, introduced), pool[1], pool[0])
        records = [*log.records, introduced, change(random.Random(1), introduced)]
        changed = key_record(records[-1], pool[1], pool[0])
        records.append(changed)
        signed = heads.sign(Head(STORE, changed.seq, changed.hash, 0), pool[1])
        history = rotation.follow(records, STORE, keys.public_key(pool[0]))
        head = heads.check(signed, history)
        assert verify([r.body() for r in records], STORE, head).status == "ok"
    assert KEY not in str(signed).encode()
