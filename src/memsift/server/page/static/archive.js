// The archive: what was forgotten and can come back.

import { get, post } from "./api.js";
import { $, el, show } from "./dom.js";
import { brief, count, date, said, some } from "./words.js";

const PAGE = 25;

/** Bring entries back, and say what that did. */
export async function restore(page, ids) {
  if (!(await page.unlocked())) return;
  const done = await post("restore", { ids });
  await page.refresh();
  page.notice(`${some(done.restored, "entry is", "entries are")} back${done.evicted ? `; ${count(done.evicted)} left to make room` : ""}.`);
}

export function makeArchive(page) {
  let query = "";
  let shown = 0;
  const chosen = new Set();

  function line(entry) {
    const box = el("input", { type: "checkbox", "aria-label": `Choose: ${brief(entry)}` });
    box.checked = chosen.has(entry.id);
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(entry.id);
      else chosen.delete(entry.id);
      count_();
    });
    const near = entry.score === undefined || !query ? "" : `nearness ${entry.score.toFixed(2)} · `;
    return el(
      "li",
      { class: "choice" },
      box,
      el("div", {}, said(entry), el("span", { class: "why" }, `${near}from ${date(entry.created_at)} · ${some(entry.uses, "use")}`)),
      el("button", { type: "button", class: "mini", "aria-label": `Restore: ${brief(entry)}`, on: { click: () => page.run(() => restore(page, [entry.id])) } }, "Restore"),
    );
  }

  function count_() {
    $("restore").disabled = chosen.size === 0;
    $("restore").textContent = chosen.size ? `Restore ${some(chosen.size, "entry", "entries")}` : "Restore selected";
  }

  async function list(offset) {
    const found = await get("archive", query ? { q: query, offset, limit: PAGE } : { offset, limit: PAGE });
    if (offset === 0) show($("archived"));
    $("archived").append(...found.entries.map(line));
    shown = offset + PAGE;
    $("more-archived").hidden = shown >= found.total;
    if (!found.total) show($("archived"), el("li", { class: "empty" }, query ? "Nothing in the archive comes near." : "Nothing rests here."));
    $("archive-words").textContent = query ? `${some(found.total, "archived entry", "archived entries")} among the nearest ${count(found.among)} of all, nearest first.` : "";
  }

  $("archive-search").addEventListener("submit", (event) => {
    event.preventDefault();
    query = $("archive-query").value.trim();
    page.run(() => list(0));
  });
  $("archive-query").addEventListener("search", () => {
    if ($("archive-query").value || !query) return;
    query = "";
    page.run(() => list(0));
  });
  $("more-archived").addEventListener("click", () => page.run(() => list(shown)));
  $("restore").addEventListener("click", () => page.run(() => restore(page, [...chosen])));

  return {
    async render() {
      chosen.clear();
      count_();
      $("archive-count").textContent = some(page.state.archived, "entry", "entries");
      await list(0);
    },
  };
}
