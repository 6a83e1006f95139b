"""The page's calls against the memory that they tell of: what they show is so, and looking changes nothing."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_world import HOSTILE, TOKEN, Words, client_of, filled, sentences

from memsift.agent import AgentMemory

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
READS = [
    "state",
    "plan",
    "plan?target=0.3",
    "search?q=soup",
    "search?q=soup&k=3&archived=yes",
    "archive",
    "archive?q=soup",
    "regret",
    "audit",
    "verify",
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[AgentMemory]:
    with filled(tmp_path / "page.memsift") as made:
        yield made


@pytest.fixture
def client(memory: AgentMemory) -> Any:
    return client_of(memory)


def ask(client: Any, call: str) -> Any:
    response = client.get(f"/api/{call}")
    assert response.status_code == 200, response.text
    return response.json()


def do(client: Any, call: str, **fields: Any) -> Any:
    return client.post(f"/api/{call}", json=fields, headers=HEADERS)


def everything(client: Any, look: str, **query: Any) -> list[Any]:
    """All entries of a look, page by page."""
    out: list[Any] = []
    while True:
        params = {"look": look, "offset": len(out), "limit": 7, **query}
        found = client.get("/api/entries", params=params).json()
        out += found["entries"]
        if not found["entries"]:
            assert len(out) == found["total"]
            return out


# ---- looking -------------------------------------------------------------------------------------


def test_looking_leaves_no_trace(memory: AgentMemory, client: Any) -> None:
    before = memory.store.view().digest(), len(memory.store.audit), memory.store.stats().searches
    look = ask(client, "plan")["look"]
    for call in [*READS, f"entries?look={look}", f"entry?look={look}&id=0"]:
        ask(client, call)
    after = memory.store.view().digest(), len(memory.store.audit), memory.store.stats().searches
    assert before == after


def test_the_state_is_that_of_the_store(memory: AgentMemory, client: Any) -> None:
    found, stats = ask(client, "state"), memory.store.stats()
    assert found["entries"] == stats.entries == len(memory.store)
    assert found["size"] == stats.size._asdict()
    assert found["budget"] == {"entries": 200, "cost": 5_000}
    assert found["archived"] == len(memory.store.archived())
    assert (found["evicted"], found["records"]) == (stats.regret.evicted, 2)
    assert found["may_write"] is False
    assert client.get("/api/state", headers=HEADERS).json()["may_write"] is True


@pytest.mark.parametrize("target", [4, 20, 54, 0.3, 0.9])
def test_a_look_shows_the_plan_that_the_memory_makes(
    memory: AgentMemory, client: Any, target: float
) -> None:
    expected = memory.plan(target)
    found = ask(client, f"plan?target={target}")
    points = found["points"]
    victims = [i for i, leaves in zip(points["id"], points["victim"], strict=True) if leaves]
    assert sorted(victims) == expected.victims.tolist()
    assert found["victims"] == len(expected.victims)
    assert found["forced"] == expected.forced
    assert found["after"] == expected.after._asdict()
    assert sorted(points["id"]) == sorted(expected.view.ids.tolist())
    assert max(map(abs, points["x"] + points["y"])) == 1.0
    pinned = [i for i, held in zip(points["id"], points["pinned"], strict=True) if held]
    assert len(pinned) == len(HOSTILE)


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("score", lambda e: e["score"]),
        ("-score", lambda e: -e["score"]),
        ("-uses", lambda e: -e["uses"]),
        ("-accessed", lambda e: -e["accessed_at"]),
        ("-created", lambda e: -e["created_at"]),
        ("created", lambda e: e["created_at"]),
    ],
)
def test_pages_of_entries_have_each_once_and_in_order(
    memory: AgentMemory, client: Any, order: str, key: Any
) -> None:
    look = ask(client, "plan?target=0.5")["look"]
    found = everything(client, look, order=order)
    assert sorted(e["id"] for e in found) == sorted(memory.store.view().ids.tolist())
    assert [key(e) for e in found] == sorted(key(e) for e in found)


def test_victims_and_pins_can_be_asked_for_alone(memory: AgentMemory, client: Any) -> None:
    plan = memory.plan(0.5)
    look = ask(client, "plan?target=0.5")["look"]
    found = everything(client, look, show="victims")
    assert sorted(e["id"] for e in found) == plan.victims.tolist()
    assert {e["verdict"] for e in found} == {"evict"}
    assert all(e["margin"] <= 0 for e in found)
    assert [e["text"] for e in found] == [e.text for e in memory.get([e["id"] for e in found])]
    pinned = everything(client, look, show="pinned")
    assert {e["text"][:20] for e in pinned} == {text[:20] for text in HOSTILE}


def test_each_signal_says_how_many_entries_have_less_of_it(
    memory: AgentMemory, client: Any
) -> None:
    look = ask(client, "plan")["look"]
    found = everything(client, look)
    for name in {signal["name"] for entry in found for signal in entry["signals"]}:
        values = {e["id"]: s for e in found for s in e["signals"] if s["name"] == name}
        for signal in values.values():
            less = sum(s["value"] < signal["value"] - 1e-6 for s in values.values())
            most = sum(s["value"] < signal["value"] + 1e-6 for s in values.values())
            assert less / len(found) - 1e-3 <= signal["below"] <= most / len(found) + 1e-3
            assert 1 - most / len(found) - 1e-3 <= signal["above"] <= 1 - less / len(found) + 1e-3


def test_one_entry_is_shown_whole_and_a_list_cuts_long_texts(client: Any) -> None:
    look = ask(client, "plan")["look"]
    (long,) = (e for e in everything(client, look) if e["cut"])
    whole = ask(client, f"entry?look={look}&id={long['id']}")
    assert whole["text"] == HOSTILE[3]
    assert long["text"] == HOSTILE[3][:400]
    assert whole["metadata"] == {"<b>key</b>": "</script>"}


def test_search_answers_as_recall_does(memory: AgentMemory, client: Any) -> None:
    expected = memory.recall("note about the train", 4, touch=False)
    found = ask(client, "search?q=note about the train&k=4")["hits"]
    assert [(h["id"], h["text"]) for h in found] == [(h.id, h.text) for h in expected]


def test_the_archive_is_listed_and_searched(memory: AgentMemory, client: Any) -> None:
    resting = memory.store.archived().tolist()
    first, second = ask(client, "archive?limit=5"), ask(client, "archive?limit=5&offset=5")
    assert [e["id"] for e in first["entries"] + second["entries"]] == resting[::-1]
    wanted = memory.get(resting[3])[0]
    assert wanted is not None
    found = ask(client, f"archive?q={wanted.text}")
    assert found["entries"][0]["text"] == wanted.text
    assert sorted(e["id"] for e in found["entries"]) == resting


def test_regret_tells_what_the_store_counts(memory: AgentMemory, client: Any) -> None:
    (gone,) = memory.get(memory.store.archived()[2:3])
    assert gone is not None
    assert gone.text is not None
    memory.recall(gone.text, 3)
    found, regret = ask(client, "regret"), memory.store.stats().regret
    assert (found["evicted"], found["wanted"]) == (10, regret.wanted)
    assert regret.wanted >= 1
    texts = [e.text for e in memory.get([g.id for g in regret.recent]) if e is not None]
    assert [g["text"] for g in found["recent"]] == texts
    assert found["series"]["evicted"] == [10, 10]
    assert found["series"]["restored"] == [0, 1]


# ---- the chain -----------------------------------------------------------------------------------


def test_the_chain_is_proved_by_a_head_and_unproven_without(client: Any) -> None:
    assert ask(client, "verify")["status"] == "unproven"
    note = ask(client, "audit")["head"]["note"]
    assert client.get("/api/verify", params={"head": note}).json()["status"] == "ok"
    assert client.get("/api/verify", params={"head": note.strip()}).json()["status"] == "ok"
    response = client.get("/api/verify", params={"head": "nonsense"})
    assert response.status_code == 400


def test_a_broken_chain_is_named_and_everything_else_still_answers(
    memory: AgentMemory, client: Any
) -> None:
    with sqlite3.connect(memory.store.path) as db:
        spared = "replace(CAST(body AS TEXT), '\"spared\":0', '\"spared\":1')"
        db.execute(f"UPDATE audit SET body = CAST({spared} AS BLOB) WHERE seq = 1")
    db.close()
    assert ask(client, "verify")["status"] == "broken"
    assert ask(client, "verify")["seq"] == 2
    assert len(ask(client, "audit")["records"]) == 2
    with sqlite3.connect(memory.store.path) as db:
        db.execute("UPDATE audit SET body = X'7b' WHERE seq = 2")
    db.close()
    assert ask(client, "verify")["seq"] == 2
    assert ask(client, "regret")["series"]["readable"] is False
    assert [record["seq"] for record in ask(client, "audit")["records"]] == [1]
    assert ask(client, "audit")["head"] is None


def test_records_are_paged_from_the_newest(memory: AgentMemory, client: Any) -> None:
    for target in (50, 45, 40):
        memory.compact(target)
    seen: list[int] = []
    before = 10**9
    while page := ask(client, f"audit?limit=2&before={before}")["records"]:
        seen += [record["seq"] for record in page]
        before = seen[-1]
    assert seen == [5, 4, 3, 2, 1]


# ---- changing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("apply", {"look": "x", "count": 1, "force": False}),
        ("restore", {"ids": [1]}),
        ("pin", {"ids": [5], "pinned": True}),
    ],
)
def test_nothing_changes_without_the_token(
    memory: AgentMemory, client: Any, call: str, fields: Any
) -> None:
    before = memory.store.view().digest()
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        response = client.post(f"/api/{call}", json=fields, headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
    assert client.get(f"/api/{call}", headers=HEADERS).status_code == 404
    assert memory.store.view().digest() == before


def test_a_plan_that_was_seen_is_applied_as_it_was_seen(memory: AgentMemory, client: Any) -> None:
    found = ask(client, "plan?target=0.8")
    victims = set(memory.plan(0.8).victims.tolist())
    held = set(memory.store.view().ids.tolist())
    done = do(client, "apply", look=found["look"], count=found["victims"], force=False).json()
    assert done == {"evicted": len(victims), "spared": 0, "left": len(held - victims)}
    assert set(memory.store.view().ids.tolist()) == held - victims
    assert victims <= set(memory.store.archived().tolist())
    assert len(memory.store.audit) == 3
    again = do(client, "apply", look=found["look"], count=found["victims"], force=False)
    assert (again.status_code, again.json()["evicted"]) == (200, 0)
    assert len(memory.store) == len(held - victims)


def test_a_victim_that_was_wanted_meanwhile_is_spared(memory: AgentMemory, client: Any) -> None:
    found = ask(client, "plan?target=0.8")
    victim = int(memory.plan(0.8).victims[0])
    memory.pin([victim])
    done = do(client, "apply", look=found["look"], count=found["victims"], force=False).json()
    assert (done["evicted"], done["spared"]) == (found["victims"] - 1, 1)
    assert victim in memory.store


def test_the_number_must_be_the_one_agreed_to_and_below_half_needs_force(
    memory: AgentMemory, client: Any
) -> None:
    before = memory.store.view().digest()
    found = ask(client, "plan?target=0.3")
    assert found["forced"]
    wrong = do(client, "apply", look=found["look"], count=found["victims"] + 1, force=True)
    assert (wrong.status_code, "count" in wrong.json()["error"]) == (400, True)
    mild = do(client, "apply", look=found["look"], count=found["victims"], force=False)
    assert (mild.status_code, "force" in mild.json()["error"]) == (400, True)
    assert memory.store.view().digest() == before
    forced = do(client, "apply", look=found["look"], count=found["victims"], force=True)
    assert forced.json()["evicted"] == found["victims"]


def test_restored_entries_come_back_with_their_texts(memory: AgentMemory, client: Any) -> None:
    some = memory.store.archived()[:3].tolist()
    texts = [e.text for e in memory.get(some) if e is not None]
    assert do(client, "restore", ids=some).json()["restored"] == 3
    assert memory.store.holds(some).all()
    assert [e.text for e in memory.get(some) if e is not None] == texts
    assert do(client, "restore", ids=[10**6]).status_code == 404


def test_pins_are_set_and_taken_off(memory: AgentMemory, client: Any) -> None:
    (id_,) = memory.plan(0.9).victims[:1].tolist()
    for pinned in (True, False):
        assert do(client, "pin", ids=[id_], pinned=pinned).status_code == 200
        assert memory.get([id_])[0].pinned is pinned  # type: ignore[union-attr]
    assert do(client, "pin", ids=[10**6], pinned=True).status_code == 404


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("state?x=1", "parameters"),
        ("plan?target=0", "target"),
        ("plan?target=1.5", "target"),
        ("plan?target=-3", "target"),
        ("plan?target=nan", "target"),
        ("plan?target=99999", "target"),
        ("plan?target=" + "9" * 40, "target"),
        ("plan?target=5&target=6", "target"),
        ("plan?target=٣", "target"),
        ("entries", "look"),
        ("entries?look={look}&limit=0", "limit"),
        ("entries?look={look}&limit=101", "limit"),
        ("entries?look={look}&limit=ten", "limit"),
        ("entries?look={look}&offset=-1", "offset"),
        ("entries?look={look}&order=name", "order"),
        ("entries?look={look}&show=some", "show"),
        ("entry?look={look}&id=99999", "id"),
        ("entry?look={look}", "id"),
        ("search", "q"),
        ("search?q=", "q"),
        ("search?q=%20", "q"),
        ("search?q=" + "a" * 2_001, "q"),
        ("search?q=a&k=0", "k"),
        ("search?q=a&k=1e3", "k"),
        ("search?q=a&archived=maybe", "archived"),
        ("search?q=%00", "query"),
        ("archive?offset=x", "offset"),
        ("audit?before=0", "before"),
        ("verify?head=x", "head"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(client: Any, call: str, named: str) -> None:
    look = ask(client, "plan")["look"]
    response = client.get(f"/api/{call.replace('{look}', look)}")
    error = response.json()["error"]
    assert response.status_code == 400
    assert named in error
    assert len(error) < 300
    assert "Traceback" not in error


def test_a_target_below_the_pinned_entries_is_a_conflict(client: Any) -> None:
    response = client.get("/api/plan?target=3")
    assert (response.status_code, "pinned" in response.json()["error"]) == (409, True)


def test_a_look_that_is_gone_says_so(client: Any) -> None:
    first = ask(client, "plan")["look"]
    for share in range(1, 8):
        ask(client, f"plan?target=0.{share}")
    assert client.get(f"/api/entries?look={first}").status_code == 410
    assert do(client, "apply", look=first, count=1, force=False).status_code == 410
    assert client.get("/api/nothing").status_code == 404


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"ids": [1]}', "text/plain", 415),
        (b'{"ids": [1]}', "", 415),
        (b"", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b'{"ids": [1], "more": 1}', "application/json", 400),
        (b'{"ids": [1], "ids": [2]}', "application/json", 400),
        (b'{"ids": []}', "application/json", 400),
        (b'{"ids": [true]}', "application/json", 400),
        (b'{"ids": [1.5]}', "application/json", 400),
        (b'{"ids": [-1]}', "application/json", 400),
        (b'{"ids": NaN}', "application/json", 400),
        (b'{"ids": "1"}', "application/json", 400),
        (b'{"ids": [' + b"1," * 1_000 + b"1]}", "application/json", 400),
        (b"[" * 30_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b" " * 70_000, "application/json", 413),
        (b'{"ids": [99999999999999999999999999]}', "application/json", 404),
    ],
)
def test_bad_bodies_change_nothing(
    memory: AgentMemory, client: Any, body: bytes, kind: str, status: int
) -> None:
    before = memory.store.view().digest()
    headers = {**HEADERS, "Content-Type": kind}
    response = client.post("/api/restore", content=body, headers=headers)
    assert (response.status_code, response.json().keys()) == (status, {"error"})
    assert memory.store.view().digest() == before


class Broken(Exception):
    """What no one expected."""


@pytest.mark.parametrize("error", [Broken, OSError, AssertionError])
def test_an_error_that_nobody_expected_says_nothing_of_the_inside(
    memory: AgentMemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error("/home/somebody/secret.memsift: canary")

    monkeypatch.setattr(memory, "recall", fail)
    client = client_of(memory)
    response = client.get("/api/search?q=soup")
    assert response.status_code == 500
    assert response.json() == {"error": f"the memory could not answer ({error.__name__})"}
    assert "canary" not in caplog.text
    assert "secret" not in caplog.text


def test_nothing_that_is_stored_or_asked_is_logged(
    memory: AgentMemory, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory.remember("canary-4711 was remembered", metadata={"note": "canary-4711"})
    with caplog.at_level(logging.DEBUG, logger="memsift"):
        look = ask(client, "plan?target=0.5")["look"]
        for call in [*READS, f"entries?look={look}&limit=100", "search?q=canary-4711"]:
            ask(client, call)
        do(client, "restore", ids=[10**6])
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("memsift")]
    assert "canary-4711" not in json.dumps(ours)


# ---- other memories ------------------------------------------------------------------------------


def test_an_empty_memory_answers_everything(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "empty.memsift", embedder=Words()) as memory:
        client = client_of(memory)
        found = {call: ask(client, call) for call in READS}
        assert found["plan"]["victims"] == 0
        assert found["plan"]["points"]["id"] == []
        assert found["state"]["budget"] == {}
        assert found["regret"]["series"]["times"] == []
        look = found["plan"]["look"]
        assert ask(client, f"entries?look={look}") == {"total": 0, "offset": 0, "entries": []}


def test_a_memory_without_texts_shows_ids(tmp_path: Path) -> None:
    with filled(tmp_path / "ids.memsift", payloads=False) as memory:
        client = client_of(memory)
        look = ask(client, "plan")["look"]
        found = everything(client, look)
        assert {e["text"] for e in found} == {None}
        assert len(found) == len(memory.store)
        assert ask(client, "state")["payloads"] is False


def test_a_large_memory_is_sampled_and_its_victims_are_all_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with AgentMemory.open(tmp_path / "large.memsift", embedder=Words()) as memory:
        memory.store.add_many(rng.standard_normal((5_000, Words.dim)))
        client = client_of(memory)
        points = ask(client, "plan?target=0.9")["points"]
        victims = [i for i, leaves in zip(points["id"], points["victim"], strict=True) if leaves]
        assert sorted(victims) == memory.plan(0.9).victims.tolist()
        assert 2_000 <= len(points["id"]) <= 2_500
        assert (points["of"], points["all_victims"]) == (5_000, True)
        many = ask(client, "plan?target=100")["points"]
        assert sum(many["victim"]) >= 4_000
        assert (many["all_victims"], len(many["id"]) <= 6_000) == (False, True)
        gone = memory.store.view().ids[:10]
        look = ask(client, "plan?target=0.5")["look"]
        memory.forget(gone)
        (first,) = ask(client, f"entries?look={look}&order=created&limit=1")["entries"]
        assert (first["gone"], first["text"]) == (True, None)


def test_the_map_stays_while_little_changes(memory: AgentMemory, client: Any) -> None:
    def places() -> dict[int, tuple[float, float]]:
        found = ask(client, "plan")["points"]
        return dict(zip(found["id"], zip(found["x"], found["y"], strict=True), strict=True))

    before = places()
    assert places() == before
    memory.remember_many(sentences(200)[150:154])
    after = places()
    ratios = [after[i][0] / before[i][0] for i in before if abs(before[i][0]) > 0.1]
    assert np.allclose(ratios, ratios[0], rtol=1e-2)
