// The plan: how much to keep, who would leave for that and why, and the button that does it.

import { get, post } from "./api.js";
import { confirm } from "./dialogs.js";
import { $, el, show } from "./dom.js";
import { reasons } from "./entries.js";
import { brief, count, said, score, some } from "./words.js";

const PAGE = 25;
const PAUSE = 250;

export function makePlan(page) {
  let timer = 0;
  let shown = 0;

  function line(entry) {
    const below = entry.margin === null ? "" : ` · ${score(Math.abs(entry.margin))} below the cut`;
    const why = reasons(entry);
    return el(
      "li",
      {},
      said(entry),
      el(
        "div",
        { class: "acts" },
        el("button", { type: "button", class: "mini", "aria-label": `Why: ${brief(entry)}`, on: { click: () => page.point(entry.id) } }, "Why"),
        page.entries.pinButton(entry),
      ),
      el("span", { class: "why" }, `score ${score(entry.score)}${below}${why ? ` · ${why}` : ""}`),
    );
  }

  async function victims(offset) {
    const found = await get("entries", { look: page.look.look, show: "victims", order: "score", offset, limit: PAGE });
    if (offset === 0) show($("victims"));
    $("victims").append(...found.entries.map(line));
    shown = offset + found.entries.length;
    $("more-victims").hidden = shown >= found.total;
    if (!found.total) show($("victims"), el("li", { class: "empty" }, "Nothing would leave."));
  }

  async function render() {
    const { look } = page;
    const held = look.before.entries;
    for (const id of ["keep", "keep-number"]) {
      $(id).min = Math.max(1, look.pinned);
      $(id).max = Math.max(1, held);
      $(id).value = look.after.entries;
      $(id).disabled = held === 0;
    }
    say(look.after.entries);
    const share = held ? Math.round((100 * look.victims) / held) : 0;
    $("plan-words").textContent = look.victims
      ? `${some(look.victims, "entry", "entries")} would leave (${share} %)${look.forced ? ": more than half" : ""}`
      : "Nothing would leave";
    show($("expected"), ...(look.victims ? (look.expected ?? []) : []).map((words) => el("li", {}, `${words[0].toUpperCase()}${words.slice(1)}`)));
    $("apply").textContent = look.victims ? `Forget ${some(look.victims, "entry", "entries")}…` : "Forget…";
    $("apply").disabled = !look.victims;
    await victims(0);
  }

  function say(keep) {
    $("keep-of").textContent = `of ${count(page.look.before.entries)}`;
    $("keep").setAttribute("aria-valuetext", `${count(Number(keep))} of ${some(page.look.before.entries, "entry", "entries")}`);
  }

  function retarget(source, other) {
    const keep = Math.round(Number(source.value));
    clearTimeout(timer);
    if (!(keep >= Number(source.min) && keep <= Number(source.max))) return;
    other.value = keep;
    say(keep);
    timer = setTimeout(() => page.run(() => page.plan(keep)), PAUSE);
  }

  $("keep").addEventListener("input", () => retarget($("keep"), $("keep-number")));
  $("keep-number").addEventListener("input", () => retarget($("keep-number"), $("keep")));
  $("keep-number").addEventListener("change", () => {
    const field = $("keep-number");
    const within = Math.min(Number(field.max), Math.max(Number(field.min), Math.round(Number(field.value)) || 0));
    if (String(within) === field.value) return;
    field.value = within;
    retarget(field, $("keep"));
  });
  $("more-victims").addEventListener("click", () => page.run(() => victims(shown)));
  $("apply").addEventListener("click", () =>
    page.run(async () => {
      if (!(await page.unlocked())) return;
      const { look } = page;
      const what = some(look.victims, "entry", "entries");
      await confirm({
        title: `Forget ${what}?`,
        words: `${count(look.victims)} of ${count(look.before.entries)} leave; ${count(look.after.entries)} stay. The victims go to the archive, from where they can be restored as long as it has room and time for them. What was touched or pinned meanwhile is spared.`,
        yes: `Forget ${what}`,
        force: look.forced,
        async deed(force) {
          const done = await post("apply", { look: look.look, count: look.victims, force });
          await page.refresh();
          page.notice(`${some(done.evicted, "entry", "entries")} left${done.spared ? `, ${count(done.spared)} spared` : ""}; ${count(done.left)} stay.`);
        },
      });
    }),
  );
  return { render };
}
