// Search: what the memory would answer, without leaving a trace in it.

import { get } from "./api.js";
import { restore } from "./archive.js";
import { $, el, show } from "./dom.js";
import { brief, date, said, some } from "./words.js";

export function makeSearch(page) {
  function line(hit) {
    const act = hit.archived
      ? el("button", { type: "button", class: "mini", "aria-label": `Restore: ${brief(hit)}`, on: { click: () => page.run(() => restore(page, [hit.id])) } }, "Restore")
      : el("button", { type: "button", class: "mini", "aria-label": `Show on the map: ${brief(hit)}`, on: { click: () => page.point(hit.id) } }, "Show");
    const about = [`nearness ${hit.score.toFixed(2)}`, `from ${date(hit.created_at)}`, some(hit.uses, "use")];
    if (hit.pinned) about.push("pinned");
    if (hit.archived) about.push("in the archive");
    return el("li", {}, said(hit), el("div", { class: "acts" }, act), el("span", { class: "why" }, about.join(" · ")));
  }

  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = $("query").value.trim();
    if (!words) return;
    page.run(async () => {
      const found = await get("search", { q: words, k: 10, archived: $("resting").checked ? "yes" : "no" });
      $("found").hidden = false;
      show($("hits"), ...found.hits.map(line));
      $("found-words").textContent = found.hits.length
        ? `${some(found.hits.length, "entry", "entries")}, nearest first; those on the map are ringed. Looking left no trace.`
        : "Nothing is remembered yet.";
      page.map.mark(found.hits.map((hit) => hit.id));
    });
  });
  $("found-close").addEventListener("click", () => {
    $("found").hidden = true;
    page.map.mark([]);
    $("query").focus();
  });
}
