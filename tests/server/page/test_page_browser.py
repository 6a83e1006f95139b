"""A browser drives the page: what a person does there, by pointer and by keys, in both themes, on narrow and wide."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from page_world import HOSTILE, TOKEN, filled, served

from memsift.agent import AgentMemory

sync_api = pytest.importorskip("playwright.sync_api", reason="needs memsift[dev]")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
BOTH = pytest.mark.parametrize("theme", ["light", "dark"])
expect = sync_api.expect
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[AgentMemory]:
    with filled(tmp_path / "page.memsift") as made:
        yield made


@pytest.fixture
def visit(
    browser: Any, memory: AgentMemory, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Any]]:
    """Open the page; in the end nothing was said on its console and nobody else was asked for anything."""
    wrong: list[str] = []
    forgiven = getattr(request, "param", "nothing")
    contexts = []

    with served(memory, private=forgiven == "401") as address:

        def asked(request: Any) -> None:
            if urlsplit(request.url).netloc != urlsplit(address).netloc or TOKEN in request.url:
                wrong.append(f"asked {request.url}")

        def go(
            theme: str = "light",
            width: int = 1400,
            fragment: str = "",
            ready: bool = True,
            **options: Any,
        ) -> Any:
            size = {"width": width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=theme, **options)
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on("request", asked)
            page.on("console", lambda message: wrong.append(f"console {message.text}"))
            page.on("pageerror", lambda error: wrong.append(f"error {error}"))
            page.goto(address + fragment)
            if ready:
                page.wait_for_selector("html[data-ready]")
            return page

        yield go
        for context in contexts:
            context.close()
    assert [line for line in wrong if forgiven not in line] == []


def unlock(page: Any) -> None:
    page.get_by_role("button", name="Unlock").click()
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.locator("#unlock").get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("button", name="Lock", exact=True)).to_be_visible()


def test_search_shows_hostile_text_as_text_and_leaves_no_trace(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    before = memory.store.view().digest()
    page = visit()
    page.get_by_role("searchbox", name="Search the memory").fill(HOSTILE[0])
    page.keyboard.press("Enter")
    hits = page.locator("#hits > li")
    expect(hits).to_have_count(10)
    expect(hits.first).to_contain_text(HOSTILE[0])
    assert page.title() == "memsift · default"
    assert page.locator("#hits script, #hits img").count() == 0
    page.get_by_role("searchbox", name="Search the memory").fill(HOSTILE[1])
    page.keyboard.press("Enter")
    expect(hits.first).to_contain_text("invoice U+202Egpj.exeU+202C and a bell U+0007")
    expect(hits.first).to_contain_text("U+E0041U+E0042")
    expect(page.locator("#found-words")).to_contain_text("10 entries, nearest first")
    assert memory.store.view().digest() == before


def test_a_plan_is_looked_at_and_applied_after_its_number_was_agreed_to(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit()
    held = len(memory.store)
    victims = memory.plan(held - 9).victims.tolist()
    page.get_by_role("spinbutton", name="Entries to keep").fill(str(held - 9))
    expect(page.locator("#plan-words")).to_have_text("9 entries would leave (16 %)")
    expect(page.locator("#victims > li")).to_have_count(9)
    texts = [entry.text for entry in memory.get(victims) if entry is not None]
    assert sorted(page.locator("#victims .said").all_inner_texts()) == sorted(map(str, texts))
    expect(page.locator("#victims > li").first).to_contain_text(
        re.compile("score −?[0-9.]+ · [0-9.]+ below the cut")
    )

    page.get_by_role("button", name="Forget 9 entries").click()
    expect(page.get_by_role("heading", name="Unlock")).to_be_visible()
    page.get_by_label("Token", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#unlock-error")).to_have_text("The server does not take this token.")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Forget 9 entries?")).to_be_visible()
    assert len(memory.store) == held
    page.locator("#confirm").get_by_role("button", name="Forget 9 entries").click()
    expect(page.locator("#notice")).to_contain_text(f"9 entries left; {held - 9} stay.")
    assert not memory.store.holds(victims).any()
    expect(page.locator("#archive-count")).to_have_text("18 entries")


def test_below_half_asks_once_more(visit: Callable[..., Any], memory: AgentMemory) -> None:
    page = visit(fragment=f"#token={TOKEN}")
    assert page.url.endswith("/")
    page.get_by_role("spinbutton", name="Entries to keep").fill("10")
    page.get_by_role("button", name=re.compile("Forget 4[0-9] entries")).click()
    yes = page.locator("#confirm-yes")
    expect(yes).to_be_disabled()
    page.get_by_label("Yes, more than half").check()
    expect(yes).to_be_enabled()
    page.get_by_label("Yes, more than half").uncheck()
    expect(yes).to_be_disabled()
    page.get_by_label("Yes, more than half").check()
    yes.click()
    expect(page.locator("#notice")).to_contain_text("10 stay")
    assert len(memory.store) == 10


def test_entries_come_back_from_the_archive(visit: Callable[..., Any], memory: AgentMemory) -> None:
    resting = memory.store.archived()[::-1].tolist()
    wanted = memory.get(resting[4])[0]
    assert wanted is not None
    page = visit(fragment=f"#token={TOKEN}")
    page.get_by_role("searchbox", name="Search the archive").fill(str(wanted.text))
    page.keyboard.press("Enter")
    expect(page.locator("#archive-words")).to_contain_text("9 archived entries among the nearest")
    page.locator("#archived > li").first.get_by_role("button", name="Restore").click()
    expect(page.locator("#notice")).to_contain_text("1 entry is back.")
    assert wanted.id in memory.store
    boxes = page.locator("#archived input[type=checkbox]")
    expect(boxes).to_have_count(8)
    boxes.nth(0).check()
    boxes.nth(2).check()
    page.get_by_role("button", name="Restore 2 entries").click()
    expect(page.locator("#notice")).to_contain_text("2 entries are back.")
    assert len(memory.store.archived()) == 6


def test_the_chain_is_verified_in_words(visit: Callable[..., Any], memory: AgentMemory) -> None:
    page = visit()
    verdict, button = page.locator("#verdict"), page.get_by_role("button", name="Verify")
    expect(page.locator("#records tr")).to_have_count(2)
    button.click()
    expect(verdict).to_contain_text("2 records, each follows from the one before. Not proved")
    page.get_by_text("Prove it with a head").click()
    page.get_by_label("The note as it was shown").fill(memory.store.audit.head().text())
    button.click()
    expect(verdict).to_have_text("Proved: nothing was changed or dropped up to record 2.")
    with sqlite3.connect(memory.store.path) as db:
        db.execute("UPDATE audit SET body = X'00' WHERE seq = 1")
    db.close()
    button.click()
    expect(verdict).to_contain_text("Broken at record 1.")


def test_the_map_goes_by_keys_and_the_table_has_the_same_entries(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit()
    plan = memory.plan(0.9)
    rows = plan.scores.argsort()  # type: ignore[union-attr]
    low, high = (memory.get([int(plan.view.ids[rows[at]])])[0] for at in (0, -1))
    page.locator("#map").focus()
    page.keyboard.press("Home")
    expect(page.locator("#detail .said").first).to_have_text(str(low.text))  # type: ignore[union-attr]
    expect(page.locator("#detail")).to_contain_text("would be forgotten")
    page.keyboard.press("End")
    expect(page.locator("#detail .said").first).to_have_text(str(high.text))  # type: ignore[union-attr]
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#detail .said").first).not_to_have_text(str(high.text))  # type: ignore[union-attr]
    page.get_by_role("button", name="Table").press("Enter")
    seen: list[str] = []
    expect(page.locator("#place")).to_have_text(re.compile("1 to 25 of 55"))
    for start in ("26 to 50", "51 to 55", ""):
        seen += page.locator("#rows .said").all_inner_texts()
        if start:
            page.get_by_role("button", name="Next").press("Enter")
            expect(page.locator("#place")).to_contain_text(start)
    assert len(seen) == len(set(seen)) == len(memory.store)
    page.locator("#shown").select_option("pinned")
    expect(page.locator("#rows tr")).to_have_count(len(HOSTILE))


def test_pins_are_set_from_the_list_of_victims(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit()
    unlock(page)
    worst = page.locator("#victims > li").first
    text = worst.locator(".said").inner_text()
    worst.get_by_role("button", name="Pin").press("Enter")
    expect(page.locator("#notice")).to_contain_text("Pinned")
    expect(page.get_by_role("heading", name="What would be forgotten next")).to_be_focused()
    (pinned,) = (e for e in memory.get(memory.store.view().ids) if e and e.text == text)
    assert pinned.pinned
    page.get_by_role("button", name="Lock", exact=True).click()
    expect(page.get_by_role("button", name="Unlock")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_change_by_others_is_told_and_nothing_moves_meanwhile(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit()
    before = page.locator("#where").inner_text()
    memory.remember("something entirely new, by somebody else")
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator("#notice")).to_contain_text("The memory has changed since.")
    assert page.locator("#where").inner_text() == before
    page.get_by_role("button", name="Show it as it is now").click()
    expect(page.locator("#where")).to_contain_text("56 memories")


@BOTH
@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_fits_and_its_theme_can_be_changed(
    visit: Callable[..., Any], theme: str, width: int
) -> None:
    page = visit(theme, width)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(f"{ground}.match(/\\d+/g).every(c => c < 80)")
    assert dark is (theme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    other = "Light" if theme == "dark" else "Dark"
    page.get_by_role("button", name=f"Change to {other.lower()} colours").click()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(f"{ground}.match(/\\d+/g).every(c => c < 80)") is not dark
    painted = """() => {
      const map = document.getElementById("map");
      return map.getContext("2d").getImageData(0, 0, map.width, map.height).data.some((v) => v);
    }"""
    assert page.evaluate(painted)


@pytest.mark.parametrize(("theme", "width"), [("light", 1400), ("dark", 360)])
def test_axe_finds_nothing_serious(visit: Callable[..., Any], theme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(theme, width, bypass_csp=True)

    def check(where: str) -> None:
        response = axe.run(page).response
        assert len(response["passes"]) > 20
        found = response["violations"]
        bad = [
            (where, rule["id"], [node["html"][:120] for node in rule["nodes"]][:3])
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]
        assert bad == []

    page.get_by_role("searchbox", name="Search the memory").fill("soup")
    page.keyboard.press("Enter")
    expect(page.locator("#hits > li")).to_have_count(10)
    page.locator("#map").focus()
    page.keyboard.press("Home")
    expect(page.locator("#detail .facts")).to_be_visible()
    page.get_by_text("Prove it with a head").click()
    page.get_by_role("button", name="Verify").click()
    check("map")
    page.get_by_role("button", name="Table").click()
    expect(page.locator("#rows tr")).to_have_count(25)
    check("table")
    page.get_by_role("button", name="Unlock").click()
    check("dialog")
    page.keyboard.press("Escape")
    expect(page.locator("#unlock")).to_be_hidden()


def test_who_wants_less_motion_gets_none(visit: Callable[..., Any]) -> None:
    page = visit(reduced_motion="reduce")
    moving = """[...document.querySelectorAll("*")].map(getComputedStyle).filter(
      (style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== "none"
    ).length"""
    assert page.evaluate(moving) == 0


def test_an_answer_that_is_none_is_told(visit: Callable[..., Any]) -> None:
    page = visit()
    page.route("**/api/search**", lambda route: route.fulfill(status=200, body="<html>hello"))
    page.get_by_role("searchbox", name="Search the memory").fill("soup")
    page.keyboard.press("Enter")
    expect(page.locator("#notice")).to_contain_text("The server answered something else than JSON")


@pytest.mark.parametrize("visit", ["401"], indirect=True)
def test_a_private_server_shows_nothing_before_the_token(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit(ready=False)
    expect(page.get_by_role("heading", name="Unlock")).to_be_visible()
    assert page.locator("#where").inner_text() == ""
    page.get_by_label("Token", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#unlock-error")).to_have_text("the token is missing or wrong")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#where")).to_contain_text(f"{len(memory.store)} memories")
    expect(page.get_by_role("button", name="Lock", exact=True)).to_be_visible()


@pytest.mark.parametrize("visit", ["401"], indirect=True)
def test_an_old_token_is_dropped_and_asked_for_again(
    visit: Callable[..., Any], memory: AgentMemory
) -> None:
    page = visit(fragment="#token=of-yesterday", ready=False)
    expect(page.locator("#notice")).to_contain_text("does not take this token")
    expect(page.get_by_role("heading", name="Unlock")).to_be_visible()
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#where")).to_contain_text(f"{len(memory.store)} memories")
