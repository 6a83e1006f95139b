"""The page's style sheet. It asks for nothing from outside: system fonts, no pictures."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #fbfaf8; --ink: #1d2329; --quiet: #56606a; --rule: #d9dde1; --card: #ffffff;
  --tint: #f0f2f4; --accent: #0072b2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181c; --ink: #e8ebee; --quiet: #a3adb7; --rule: #343c44; --card: #1b2026;
    --tint: #222930; --accent: #6db8e8;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial,
    sans-serif;
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%;
}
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
header { border-top: 4px solid var(--accent); padding-top: 1rem; margin-bottom: 2rem; }
h1, h2, h3 { line-height: 1.2; text-wrap: balance; overflow-wrap: anywhere; }
h1 { font-size: clamp(1.6rem, 1.1rem + 2.4vw, 2.5rem); margin: 0 0 .6rem; letter-spacing: -.015em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; }
h3 { font-size: 1.05rem; margin: 0 0 .35rem; }
p { margin: 0 0 .75rem; max-width: 68ch; overflow-wrap: anywhere; }
.lead { font-size: 1.15rem; color: var(--quiet); }
.quiet, figcaption { color: var(--quiet); font-size: .875rem; }
.charts {
  display: grid; gap: 2rem 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr));
}
.chart { display: flex; flex-direction: column; min-width: 0; max-width: 36rem; margin: 0; }
.chart > p { flex: 1 0 auto; }
figure { margin: 0; }
.results + .results { margin-top: 2rem; }
/* The picture is drawn on white, so it brings its own light card into the dark. */
.card {
  margin: 0; padding: .75rem .5rem; background: #fff; border-radius: 6px;
  border: 1px solid var(--rule);
}
.card svg { display: block; width: 100%; height: auto; }
/* Drawn with a wider font; whatever the reader's system has instead fits the same room. */
.card svg text {
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif
    !important;
}
figcaption { margin-top: .5rem; }
.scroll { overflow-x: auto; margin: 0 0 .5rem; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
/* Separate borders: collapsed ones do not move with the column that stays in place. */
table { border-collapse: separate; border-spacing: 0; }
table { font-variant-numeric: tabular-nums; font-size: .9375rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; font-weight: 400; }
thead th { color: var(--quiet); font-size: .8125rem; vertical-align: bottom; }
thead tr:first-child th[scope="colgroup"] {
  color: var(--ink); font-size: .9375rem; font-weight: 600; text-align: center;
}
thead tr:last-child th, th.name { border-bottom: 1.5px solid var(--ink); }
th[scope="row"], th.name { text-align: left; position: sticky; left: 0; background: var(--page); }
tbody tr > * { border-bottom: 1px solid var(--rule); }
tbody tr.last-ceiling > * { border-bottom: 1.5px solid var(--quiet); }
tbody tr.floor > * { background: var(--tint); }
td.first, th.first { padding-left: 1.4rem; }
td.side { color: var(--quiet); }
td strong { font-weight: 700; }
.spread, .role { color: var(--quiet); font-size: .8125rem; }
/* On a line of its own, so that decimal points stay in one column. */
.spread { display: block; line-height: 1.2; }
.role::before { content: "\\00a0"; }
dl { max-width: 68ch; margin: 0; }
dt { font-weight: 600; }
dd { margin: 0 0 .6rem; }
pre {
  overflow-x: auto; background: var(--card); border: 1px solid var(--rule); border-radius: 6px;
  padding: .9rem 1rem; font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
@media (max-width: 40rem) {
  .card { padding: .5rem .125rem; }
  .card svg text { font-size: 10px !important; }
  th, td { padding: .3rem .45rem; }
  th[scope="row"] { white-space: normal; min-width: 6.5rem; padding-left: 0; }
  th.name { padding-left: 0; }
  td.first, th.first { padding-left: .9rem; }
  .role { display: block; line-height: 1.2; }
  .role::before { content: none; }
}
@media print {
  :root {
    --page: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --card: #fff; --tint: #f0f0f0;
    color-scheme: light;
  }
  main { max-width: none; padding: 0; }
  .chart, .results, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .scroll { overflow: visible; }
  pre { white-space: pre-wrap; }
}
"""
