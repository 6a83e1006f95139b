// Regret: what left, what came back, and what a query would have wanted again.

import { get } from "./api.js";
import { restore } from "./archive.js";
import { $, el, show, svg } from "./dom.js";
import { brief, compact, count, date, moment, percent, said, some } from "./words.js";

const H = 190;
const EDGE = { left: 40, right: 86, top: 14, bottom: 26 };

function chart({ series, recent }, W) {
  const { times, evicted, restored } = series;
  const start = times[0];
  const wishes = recent.map((ghost) => ghost.wanted_at);
  const end = Math.max(times.at(-1), ...wishes, start + 1);
  const most = Math.max(evicted.at(-1), restored.at(-1), 1);
  const x = (time) => EDGE.left + ((Math.max(time, start) - start) / (end - start)) * (W - EDGE.left - EDGE.right);
  const y = (amount) => H - EDGE.bottom - (amount / most) * (H - EDGE.top - EDGE.bottom);
  const steps = (values) =>
    `M${x(start)},${y(0)} ` + times.map((time, i) => `H${x(time).toFixed(1)} V${y(values[i]).toFixed(1)}`).join(" ") + ` H${x(end)}`;
  const day = end - start < 2 * 86_400 ? moment : date;
  const right = x(end) + 8;
  // Labels at the lines' ends, kept apart where the ends are close.
  const top = y(evicted.at(-1));
  const low = Math.max(y(restored.at(-1)), top + 16);
  const text = (words, at, attributes) => svg("text", { x: at[0], y: at[1], ...attributes }, words);
  const words =
    `Line chart from ${date(start)} to ${date(end)}: ${count(evicted.at(-1))} evicted and ` +
    `${count(restored.at(-1))} restored in all; ${some(recent.length, "recent wish", "recent wishes")} marked.`;
  return svg(
    "svg",
    { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": words },
    ...[0, most].map((amount) => svg("line", { class: "axis", x1: EDGE.left, x2: x(end), y1: y(amount), y2: y(amount) })),
    text(compact(most), [EDGE.left - 6, y(most) + 4], { "text-anchor": "end" }),
    text("0", [EDGE.left - 6, y(0) + 4], { "text-anchor": "end" }),
    text(day(start), [EDGE.left, H - 6], {}),
    text(day(end), [x(end), H - 6], { "text-anchor": "end" }),
    svg("path", { class: "evicted", d: steps(evicted) }),
    svg("path", { class: "restored", d: steps(restored) }),
    text(`${compact(evicted.at(-1))} evicted`, [right, top + 4], { class: "evicted-label" }),
    text(`${compact(restored.at(-1))} restored`, [right, low + 4], { class: "restored-label" }),
    ...wishes.map((time) => svg("path", { class: "wish", d: `M${x(time)},${y(0) - 7} l6,7 l-6,7 l-6,-7 z` })),
  );
}

function line(page, ghost, restorable) {
  const back = restorable.includes(ghost.id);
  const entry = { id: ghost.id, text: ghost.text };
  return el(
    "li",
    {},
    ghost.text === null ? el("span", { class: "said untold" }, `entry ${ghost.id}, whose text is gone`) : said(entry),
    back
      ? el("button", { type: "button", class: "mini", "aria-label": `Restore: ${brief(entry)}`, on: { click: () => page.run(() => restore(page, [ghost.id])) } }, "Restore")
      : null,
    el("span", { class: "why" }, `left ${date(ghost.evicted_at)}, last wanted ${date(ghost.wanted_at)}, ${some(ghost.times, "time")}`),
  );
}

let drawn = null;
let width = 0;

function draw() {
  if (drawn && width) show($("chart"), chart(drawn, Math.max(260, width)));
}

export async function regret(page) {
  const found = await get("regret");
  drawn = found.series.records ? found : null;
  const share = found.evicted ? ` (${percent(found.wanted / found.evicted)})` : "";
  $("regret-words").textContent = found.evicted
    ? `${some(found.evicted, "entry", "entries")} evicted, ${count(found.wanted)} of them later wanted${share}.`
    : "Nothing was ever evicted: nothing to regret.";
  const { series } = found;
  if (drawn) draw();
  else show($("chart"));
  const limits = [];
  if (series.records) limits.push("Lines: the audit chain.");
  if (found.recent.length) limits.push(`Diamonds: when the ${some(found.recent.length, "entry", "entries")} that were wanted last were wanted; earlier wishes are counted, not dated.`);
  if (series.pruned) limits.push(`${some(series.pruned, "older record was", "older records were")} pruned, so the lines begin later than the count.`);
  if (!series.readable) limits.push("A record cannot be read: the lines end there. Verify the chain.");
  if (found.evicted) limits.push(`A lower bound: ${count(found.watched)} of those that left are watched.`);
  $("chart-words").textContent = limits.join(" ");
  show(
    $("wanted"),
    ...found.recent.slice(0, 3).map((ghost) => line(page, ghost, found.restorable)),
    found.recent.length ? null : el("li", { class: "empty" }, "None."),
  );
}

new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return; // what was drawn made it higher, not wider
  width = contentRect.width;
  draw();
}).observe($("chart"));
