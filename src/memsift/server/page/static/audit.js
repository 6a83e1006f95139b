// The audit chain: its last records, and whether it is whole.

import { get } from "./api.js";
import { $, el, show } from "./dom.js";
import { count, moment, some } from "./words.js";

const PAGE = 8;

function what(record) {
  if (record.kind === "compaction") {
    const spared = record.spared ? `, ${count(record.spared)} spared` : "";
    return `${count(record.evicted)} evicted by ${record.policy ?? "a policy"}${spared}${record.forced ? ", forced" : ""}`;
  }
  if (record.kind === "restore") return `${count(record.restored)} restored`;
  if (record.kind === "erase") return `${count(record.evicted)} erased for good`;
  if (record.kind === "prune") return "older records pruned";
  return record.kind;
}

function row(record) {
  return el(
    "tr",
    {},
    el("td", { class: "number" }, count(record.seq)),
    el("td", {}, moment(record.time)),
    el("td", {}, what(record)),
    el("td", { class: "number" }, record.entries === null ? "–" : count(record.entries)),
  );
}

const WORDS = {
  ok: (found) => `Proved: nothing was changed or dropped up to record ${count(found.seq)}.`,
  broken: (found) => (found.seq ? `Broken at record ${count(found.seq)}.` : "Broken."),
  unproven: (found) => (found.last ? `${some(found.last, "record")}, each follows from the one before. Not proved: ` : "Empty. Not proved: "),
};

export function makeAudit(page) {
  let oldest = null;

  async function list(before) {
    const found = await get("audit", before ? { before, limit: PAGE } : { limit: PAGE });
    if (!before) show($("records"));
    $("records").append(...found.records.map(row));
    oldest = found.records.at(-1)?.seq ?? null;
    $("more-records").hidden = !found.older;
    $("head-now").textContent = found.head ? found.head.note.trimEnd() : "The last record cannot be read.";
    if (!found.count) show($("records"), el("tr", {}, el("td", { colspan: 4, class: "empty" }, "No decision was recorded yet.")));
  }

  async function verify() {
    const head = $("head").value.trim();
    const verdict = $("verdict");
    verdict.textContent = "Verifying…";
    const found = await get("verify", head ? { head } : {});
    verdict.className = `verdict ${found.status}`;
    const plain = WORDS[found.status](found);
    verdict.textContent =
      found.status === "unproven"
        ? `${plain}${head ? found.words.replace(/^.*?, but /, "") : "no head from elsewhere was given, so the last records could be missing"}.`
        : found.status === "broken"
          ? `${plain} ${found.words}`
          : plain;
  }

  $("verify").addEventListener("click", () =>
    page.run(verify).catch(() => ($("verdict").textContent = "Not verified.")),
  );
  $("more-records").addEventListener("click", () => page.run(() => list(oldest)));
  return { render: () => list(null) };
}
