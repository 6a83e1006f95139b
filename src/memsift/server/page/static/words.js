// Stored text made safe to look at, and numbers and times made readable.

import { el } from "./dom.js";

// Controls, bidi marks, invisible and tag characters: what could hide text or show it in another order. Joiners stay,
// for scripts and emoji need them; line breaks and tabs stay as well.
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** The text of an entry, with what cannot be seen made visible. */
export function said(entry) {
  if (entry.text === null || entry.text === undefined) {
    return el("span", { class: "said untold" }, `entry ${entry.id}, kept without its text`);
  }
  const whole = entry.text.replaceAll("\r\n", "\n");
  const out = el("span", { class: "said", dir: "auto" });
  let from = 0;
  for (const match of whole.matchAll(ODD)) {
    if (match.index > from) out.append(whole.slice(from, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    out.append(el("span", { class: "odd" }, `U+${code}`));
    from = match.index + match[0].length;
  }
  out.append(whole.slice(from) + (entry.cut ? "…" : ""));
  return out;
}

/** Some characters of a text, for a label that a screen reader says. */
export function brief(entry, length = 60) {
  if (entry.text === null || entry.text === undefined) return `entry ${entry.id}`;
  const plain = entry.text.replace(ODD, " ").replace(/\s+/g, " ").trim();
  const characters = [...plain];
  return characters.length > length ? `${characters.slice(0, length).join("")}…` : plain;
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);
export const some = (n, thing, many = `${thing}s`) => `${count(n)} ${n === 1 ? thing : many}`;
export const percent = (share) => {
  const value = share * 100;
  return `${value > 0 && value < 1 ? "<1" : value > 99 && value < 100 ? ">99" : Math.round(value)}\u00a0%`;
};
export const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−"));

export function size(bytes) {
  for (const [unit, power] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (bytes >= power) return `${(bytes / power).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}

export const compact = (n) => short.format(n);

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const minute = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export const date = (seconds) => day.format(new Date(seconds * 1000));
export const moment = (seconds) => minute.format(new Date(seconds * 1000));

const VERDICTS = {
  keep: "stays",
  evict: "would be forgotten",
  pinned: "pinned",
  newcomer: "stays as a newcomer",
  probation: "stays: too new to judge",
  floor: "stays: best of its topic",
};

export const verdict = (entry) => (entry.gone ? "no longer here" : (VERDICTS[entry.verdict] ?? `stays by ${entry.verdict}`));

// What the common signals say, for people.
const SIGNALS = {
  answered: "questions since it came that some entry helped with",
  attention: "its share of what searches found",
  coherence: "how near it is to the last queries",
  density: "how near it is to what was asked lately",
  distance: "how far from the middle of everything it was when it came",
  distinctiveness: "how few others are like it",
  frequency: "how often searches returned it",
  heat: "how often searches returned it lately",
  importance: "what it is worth, by who added it",
  novelty: "how unlike everything before it was when it came",
  questions: "questions since it came",
  recency: "how lately it was touched",
  returned: "how often searches returned it, for its age",
  size: "how much it says",
  use: "how often it helped",
};

export const meaning = (signal) => SIGNALS[signal] ?? "";
