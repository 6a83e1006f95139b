// One entry in full, and all entries as a table: the map's equal for who does not look at maps.

import { get } from "./api.js";
import { $, el, show } from "./dom.js";
import { brief, count, date, meaning, percent, said, score, some, verdict } from "./words.js";

const PAGE = 25;

export function tag(entry) {
  return el("span", { class: `tag ${entry.verdict}` }, verdict(entry));
}

/** What speaks for and against an entry: each signal with how it compares to all others. */
function signals(entry) {
  return el(
    "div",
    { class: "signals" },
    ...entry.signals.map((signal) => {
      const bar = el("i");
      bar.style.width = `${Math.round(signal.below * 100)}%`;
      return el(
        "div",
        { title: meaning(signal.name) },
        el("div", { class: "name" }, signal.name, el("span", {}, `${score(signal.contribution)} · above ${percent(signal.below)}`)),
        el("div", { class: "track", "aria-hidden": "true" }, bar),
      );
    }),
  );
}

/** The signals that pull an entry down most, in words. Ties count for nobody. */
export function reasons(entry) {
  const low = entry.signals.filter((s) => s.above > 0.5).sort((a, b) => b.above - a.above);
  return low.length ? `lower than ${low.slice(0, 2).map((s) => `${percent(s.above)} in ${s.name}`).join(", ")}` : "";
}

function facts(entry) {
  const out = [tag(entry)];
  if (entry.score !== null) {
    out.push(el("span", {}, `score ${score(entry.score)}`));
    if (entry.rank) out.push(el("span", {}, `rank ${count(entry.rank)} of ${count(entry.of)}`));
    if (entry.margin !== null) {
      out.push(el("span", {}, `${score(Math.abs(entry.margin))} ${entry.margin < 0 || entry.verdict === "evict" ? "below" : "above"} the cut`));
    }
  }
  out.push(el("span", {}, some(entry.uses, "use")), el("span", {}, some(entry.accesses ?? 0, "access", "accesses")));
  if (entry.created_at) out.push(el("span", {}, `since ${date(entry.created_at)}`));
  out.push(el("span", {}, `cost ${count(entry.cost ?? 0)}`), el("span", {}, `id ${entry.id}`));
  return el("div", { class: "facts" }, ...out);
}

export function makeEntries(page) {
  const known = new Map();
  let offset = 0;
  let wanted = null;
  let chosen = null;

  async function entry(id) {
    if (!known.has(id)) {
      if (known.size > 400) known.clear();
      known.set(id, await get("entry", { look: page.look.look, id }));
    }
    return known.get(id);
  }

  /** Show one entry below the map; null goes back to the chosen one. */
  async function look(id) {
    wanted = id ?? chosen;
    const asked = wanted;
    if (asked === null) return hint();
    await new Promise((done) => setTimeout(done, 40));
    if (asked !== wanted) return;
    const found = await entry(asked);
    if (asked !== wanted) return;
    const notes = Object.entries(found.metadata ?? {});
    show(
      $("detail"),
      el("div", { class: "about" }, el("div", {}, said(found), facts(found)), found.gone ? null : pinButton(found)),
      signals(found),
      notes.length ? el("p", { class: "quiet small notes" }, said({ text: notes.map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join(" · ").slice(0, 600) })) : null,
    );
  }

  function hint() {
    show($("detail"), el("p", { class: "empty" }, "Point at an entry, or use the arrow keys on the map, to see its text and what its score is made of."));
  }

  function pinButton(found) {
    return el(
      "button",
      { type: "button", class: "mini", "aria-label": `${found.pinned ? "Unpin" : "Pin"}: ${brief(found)}`, on: { click: () => page.pin(found) } },
      found.pinned ? "Unpin" : "Pin",
    );
  }

  function row(found) {
    return el(
      "tr",
      {},
      el("td", {}, said(found)),
      el("td", { class: "number" }, score(found.score)),
      el("td", { class: "number" }, count(found.uses)),
      el("td", {}, tag(found)),
      el("td", {}, el("div", { class: "acts" }, found.gone ? null : pinButton(found))),
    );
  }

  async function table() {
    const found = await get("entries", { look: page.look.look, show: $("shown").value, order: $("order").value, offset, limit: PAGE });
    const last = offset + found.entries.length;
    show($("rows"), ...found.entries.map(row));
    $("table-words").textContent = `${some(found.total, "entry", "entries")}, as of the plan beside`;
    $("place").textContent = found.total ? `${count(offset + 1)} to ${count(last)} of ${count(found.total)}` : "none";
    $("earlier").disabled = offset === 0;
    $("later").disabled = last >= found.total;
  }

  function turn(asTable) {
    $("map-view").hidden = asTable;
    $("table-view").hidden = !asTable;
    $("as-map").setAttribute("aria-pressed", String(!asTable));
    $("as-table").setAttribute("aria-pressed", String(asTable));
    if (asTable) page.run(table);
  }

  const from = (place) => () => {
    offset = Math.max(0, place());
    page.run(table);
  };
  $("as-map").addEventListener("click", () => turn(false));
  $("as-table").addEventListener("click", () => turn(true));
  $("shown").addEventListener("change", from(() => 0));
  $("order").addEventListener("change", from(() => 0));
  $("earlier").addEventListener("click", from(() => offset - PAGE));
  $("later").addEventListener("click", from(() => offset + PAGE));

  return {
    pinButton,
    look,
    choose(id) {
      chosen = id;
      return look(id);
    },
    /** Another plan: what was read of the last one is not true any more. */
    async renew() {
      known.clear();
      offset = 0;
      if (chosen !== null && !page.look.points.id.includes(chosen)) chosen = null;
      await look(chosen);
      if (!$("table-view").hidden) await table();
    },
  };
}
