// What happens on the page: it asks for the state and a plan, hands them to the parts, and asks again after each deed.

import { get, post, setToken, takeToken, token } from "./api.js";
import { makeArchive } from "./archive.js";
import { makeAudit } from "./audit.js";
import { unlock } from "./dialogs.js";
import { $, el, show, svg } from "./dom.js";
import { makeEntries } from "./entries.js";
import { bars, figures } from "./figures.js";
import { makeMap } from "./map.js";
import { makePlan } from "./plan.js";
import { regret } from "./regret.js";
import { makeSearch } from "./search.js";
import { count, percent, some } from "./words.js";

const LOOK_AGAIN = 15_000;
const FIRST_SHARE = 0.9;

const page = {
  state: null,
  look: null,
  keep: null,

  /** Do something that may fail; what went wrong is said at the top. */
  async run(task) {
    try {
      await task();
    } catch (error) {
      if (error.status === 410) return page.refresh();
      if (error.status === 401 && token()) {
        // An old server's, perhaps. Looking may be free.
        setToken(null);
        page.notice("The server does not take this token; the page can only look now.");
        return page.run(page.refresh);
      }
      if (error.status === 401 && (await unlock("This server shows nothing without the token."))) return page.refresh();
      page.notice(error.message);
    }
  },

  notice(words, button = null) {
    show($("notice"), el("span", {}, words), button ?? el("button", { type: "button", class: "mini", on: { click: () => ($("notice").hidden = true) } }, "Close"));
    $("notice").hidden = false;
  },

  async refresh() {
    const section = document.activeElement?.closest("section");
    page.state = await get("state");
    header();
    figures(page.state);
    await page.plan(page.keep === null ? null : Math.min(page.keep, page.state.entries));
    await Promise.all([page.archive.render(), regret(page), page.audit.render()]);
    // What had the focus may be gone with its list; who goes by keys stays where that was.
    if (section && document.activeElement === document.body) section.querySelector("h2").focus({ preventScroll: true });
  },

  /** Another plan, and everything that hangs on it. */
  async plan(keep) {
    page.keep = keep;
    page.look = await get("plan", { target: keep || FIRST_SHARE });
    page.map.show(page.look.points);
    legend();
    bars(page.state, page.look);
    await Promise.all([page.plans.render(), page.entries.renew()]);
  },

  async unlocked() {
    if (page.state.may_write || (await unlock())) {
      page.state = { ...page.state, may_write: true };
      header();
      return true;
    }
    return false;
  },

  /** Show an entry on the map and below it. */
  point(id) {
    $("as-map").click();
    page.map.point(id);
    page.run(() => page.entries.choose(id));
    $("map").focus({ preventScroll: true });
    $("map").scrollIntoView({ block: "nearest" });
  },

  pin: (entry) =>
    page.run(async () => {
      if (!(await page.unlocked())) return;
      await post("pin", { ids: [entry.id], pinned: !entry.pinned });
      await page.refresh();
      page.notice(entry.pinned ? "Unpinned: a policy may judge it again." : "Pinned: it never leaves by a compaction.");
    }),
};

function header() {
  const { state } = page;
  $("where").textContent = `${some(state.entries, "memory", "memories")} in ${state.namespace}`;
  document.title = `memsift · ${state.namespace}`;
  $("lock").textContent = state.may_write ? "Lock" : "Unlock";
  $("lock").title = state.may_write ? "Changes are allowed in this tab" : "Read-only until the token is given";
}

function legend() {
  const { points } = page.look;
  const icon = (...shapes) => svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": "true" }, ...shapes);
  const circle = (r, fill) => svg("circle", { cx: 8, cy: 8, r, fill: `var(--${fill})` });
  const cross = { stroke: "var(--victim)", "stroke-width": 1.6, fill: "none" };
  show(
    $("legend"),
    el("li", {}, "score, low", el("span", { class: "ramp", "aria-hidden": "true" }), "high"),
    el("li", {}, icon(circle(2.5, "map-mid")), icon(circle(6.5, "map-mid")), "more uses, larger"),
    el("li", {}, icon(svg("circle", { cx: 8, cy: 8, r: 6, ...cross }), svg("path", { d: "M5 5l6 6M11 5l-6 6", ...cross })), "would be forgotten"),
    el("li", {}, icon(svg("path", { d: "M8 1l7 7-7 7-7-7z", fill: "var(--pin)" })), "pinned"),
  );
  const all = points.id.length === points.of;
  const shown = all
    ? `All ${some(points.of, "entry", "entries")}`
    : `${count(points.id.length)} of ${some(points.of, "entry", "entries")}: an even sample, and ${points.all_victims ? "all that would be forgotten" : "a part of what would be forgotten"}`;
  $("map-words").textContent =
    `${shown}. Near means alike, roughly: the two directions drawn hold ${percent(points.share)} of how the entries differ. Colour by rank.`;
  $("map").setAttribute(
    "aria-label",
    `Map of ${some(points.id.length, "entry", "entries")}, ${count(points.victim.filter(Boolean).length)} of which would be forgotten`,
  );
}

function theme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const say = () => {
    $("theme").textContent = dark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", `Change to ${dark() ? "light" : "dark"} colours`);
    page.map.paint();
  };
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("memsift-theme", document.documentElement.dataset.theme);
    } catch {
      // It holds for this page then.
    }
    say();
  });
  system.addEventListener("change", say);
  say();
}

/** Others may write to the memory meanwhile: say so, and leave what is being read alone. */
async function watch() {
  if (document.hidden || !page.state) return;
  const now = await get("state").catch(() => null);
  const moved = now && ["entries", "records", "tick", "added", "pinned", "deleted"].some((name) => now[name] !== page.state[name]);
  if (!moved) return;
  const button = el("button", { type: "button", class: "mini", on: { click: () => page.run(renewed) } }, "Show it as it is now");
  page.notice("The memory has changed since.", button);
}

async function renewed() {
  $("notice").hidden = true;
  await page.refresh();
}

page.map = makeMap($("map"), {
  onLook: (id) => page.run(() => page.entries.look(id)),
  onChoose: (id) => page.run(() => page.entries.choose(id)),
});
page.entries = makeEntries(page);
page.plans = makePlan(page);
page.archive = makeArchive(page);
page.audit = makeAudit(page);
makeSearch(page);
theme();
$("lock").addEventListener("click", () =>
  page.run(async () => {
    if (!page.state?.may_write) return page.state ? page.unlocked() : unlock();
    setToken(null);
    page.state = await get("state");
    header();
    page.notice("Locked: this tab can only look.");
  }),
);
addEventListener("hashchange", () => {
  if (takeToken()) page.run(page.refresh);
});
takeToken();
setInterval(watch, LOOK_AGAIN);
addEventListener("focus", watch);
page.run(page.refresh).finally(() => document.documentElement.setAttribute("data-ready", ""));
