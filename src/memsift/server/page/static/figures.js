// The budget as bars, and the store's figures.

import { $, el, show, svg } from "./dom.js";
import { count, percent, size } from "./words.js";

const UNITS = { entries: ["Entries", count], bytes: ["Bytes", size], cost: ["Cost (tokens)", count] };
const WIDTH = 300;

function bar(unit, held, limit, look, watermark) {
  const [name, said] = UNITS[unit];
  if (limit === undefined) {
    return el("div", { class: "bar" }, el("div", { class: "name" }, name, el("span", { class: "quiet" }, `${said(held)}, no limit`)));
  }
  const x = (amount) => Math.max(0, Math.min(WIDTH, (WIDTH * amount) / Math.max(limit, 1)));
  const after = look.before[unit] === held && look.victims ? look.after[unit] : held;
  const words = `${said(held)} of ${said(limit)}, ${percent(held / Math.max(limit, 1))}`;
  return el(
    "div",
    { class: "bar" },
    el("div", { class: "name" }, name, el("span", { class: "quiet" }, words)),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} 14`, preserveAspectRatio: "none", role: "meter", "aria-label": name,
        "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": Math.min(held, limit), "aria-valuetext": words,
      },
      svg("rect", { class: "room", x: 0, y: 1, width: WIDTH, height: 12, rx: 3 }),
      svg("rect", { class: "full", x: 0, y: 1, width: x(after), height: 12, rx: 3 }),
      svg("rect", { class: "going", x: x(after), y: 1, width: Math.max(0, x(held) - x(after)), height: 12 }),
      svg("line", { class: "mark", x1: x(limit * watermark), x2: x(limit * watermark), y1: 0, y2: 14 }),
    ),
  );
}

function hatch() {
  return svg(
    "svg",
    { class: "hidden", width: 0, height: 0, "aria-hidden": "true" },
    svg(
      "defs",
      {},
      svg(
        "pattern",
        { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("rect", { class: "hatch-ground", width: 6, height: 6 }),
        svg("line", { class: "hatch-line", x1: 1.5, x2: 1.5, y1: 0, y2: 6 }),
      ),
    ),
  );
}

export function bars(state, look) {
  const limited = Object.keys(state.budget).length > 0;
  show(
    $("bars"),
    hatch(),
    ...Object.keys(UNITS).map((unit) => bar(unit, state.size[unit], state.budget[unit], look, state.watermark)),
    limited
      ? el("p", { class: "quiet small bars-words" }, `Hatched: what the plan below would free. Dotted: where an automatic pass stops, ${percent(state.watermark)}.`)
      : el("p", { class: "quiet small bars-words" }, "This memory has no budget: nothing leaves by itself."),
  );
}

export function figures(state) {
  const rows = [
    ["Entries", count(state.entries)],
    ["Pinned", count(state.pinned)],
    ["Ever added", count(state.added)],
    ["Evicted", count(state.evicted)],
    ["In the archive", count(state.archived)],
    ["Searches", count(state.searches)],
    ["Compactions", count(state.compactions)],
    ["Texts", state.payloads ? size(state.text_bytes) : "not kept"],
    ["In RAM", size(state.allocated)],
    ["Vectors", `${count(state.dim)} × ${state.vectors}`],
    ["Index", state.index ?? "exact"],
    ["Policy", state.policy],
    ["Embedder", state.embedder ?? "none"],
  ];
  show($("stats"), ...rows.map(([name, value]) => el("div", { class: value.length > 24 ? "long" : null }, el("dt", {}, name), el("dd", {}, value))));
}
