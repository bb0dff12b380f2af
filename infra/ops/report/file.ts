/**
 * A page as one file, ready to be sent: no script, nothing loaded; also in a mail or a chat that shows files, nothing but its
 * own style is let in. Light and dark as the reader's system is, always light on paper.
 */
import { raw } from 'hono/html';
import { colours, textFont } from '../../../shared/relay/page/page-kit.ts';
import { html, type Content } from '../markup.ts';

export const fileOf = async (title: string, body: Content): Promise<string> =>
  String(
    await html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta
            http-equiv="Content-Security-Policy"
            content="default-src 'none'; style-src 'unsafe-inline'"
          />
          <title>${title}</title>
          <style>
            ${raw(style)}
          </style>
        </head>
        <body>
          ${body}
        </body>
      </html> `,
  );

const style = `
:root { color-scheme: light dark; ${colours.light} --first: var(--mark); --second: #a9b1ea; }
@media screen and (prefers-color-scheme: dark) { :root { ${colours.dark} --second: #565d9c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.5rem 3rem; background: var(--back); color: var(--ink); font: 15px/1.5 ${textFont}; }
h1 { font-size: 1.6rem; margin: 0; letter-spacing: -.015em; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.lead, .note, figcaption .unit, .tiles .note { color: var(--soft); }
.lead { margin: .2rem 0 1.4rem; }
.note { font-size: .9em; margin: .4rem 0; }
.tiles { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .75rem; }
.tiles li { border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; display: flex; flex-direction: column; }
.tiles strong { font-size: 1.45rem; font-weight: 620; font-variant-numeric: tabular-nums; letter-spacing: -.01em; }
.tiles span { font-size: .9em; }
.bad strong, td.bad { color: var(--bad); }
.warning { color: var(--warn); }
.plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.5rem; margin-top: 1.6rem; }
.plots > :first-child { grid-column: 1 / -1; }
.plot { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; }
.legend { list-style: none; display: flex; gap: 1rem; margin: .1rem 0 0; padding: 0; font-size: .9em; color: var(--soft); }
.legend li::before { content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; background: currentColor; }
.legend .first::before { background: var(--first); }
.legend .second::before { background: var(--second); }
.legend .bad::before { background: var(--bad); }
svg { display: block; width: 100%; height: auto; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .first { fill: var(--first); }
svg .second { fill: var(--second); }
svg .bad { fill: var(--bad); }
.plots > :not(:first-child) .tick { font-size: 18px; }
svg .reach { fill: transparent; }
svg g:hover .reach { fill: var(--panel); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-weight: 500; font-size: .9em; white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 8rem; }
.number { text-align: right; white-space: nowrap; }
td.words { overflow-wrap: anywhere; }
tr { break-inside: avoid; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
.sums { margin: 1rem 0 2rem; }
.sums :is(th, td):not(:first-child) { text-align: right; }
.total tbody tr:last-child { font-weight: 600; }
.problem { border: 2px solid var(--bad); padding: .5rem 1rem; }
summary { cursor: pointer; color: var(--soft); margin-top: 1.2rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9em; }
@media screen and (max-width: 40rem) {
  body { padding: 1.2rem 1rem 2rem; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .plots { grid-template-columns: minmax(0, 1fr); }
  svg .tick { font-size: 18px; }
}
@media print {
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
  svg rect, .legend li::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;
