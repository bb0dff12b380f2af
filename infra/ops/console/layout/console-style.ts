/** The console's additions to the style sheet of the customers' pages: dense tables, forms, tiles, plots. */

import { colours } from '../../../../shared/relay/page/page-kit.ts';

export const consoleStyle = `
/* Four sizes of type: notes, text, headings, figures. */
:root { --note: .8rem; --text: .875rem; --heading: 1rem; --figure: 1.3rem; --bad-back: #fdf0ee; --good-back: #edf7f1; --first: var(--mark); --second: #8a5cd1; --third: #12866f; --edge: #8a939c; }
@media screen and (prefers-color-scheme: dark) { :root { --bad-back: #33201f; --good-back: #1a2a22; --second: #c3a4ff; --third: #5fd3bb; --edge: #737d88; } }
/* Colours of marks and series. */
.bad { --tone: var(--bad); --tone-back: var(--bad-back); }
.warning { --tone: var(--warn); --tone-back: var(--warnback); }
.good { --tone: var(--good); --tone-back: var(--good-back); }
.first { --tone: var(--first); }
.second { --tone: var(--second); }
.third { --tone: var(--third); }
html { scrollbar-gutter: stable; background: var(--back); scroll-padding-top: 0; }
body.console { font-size: var(--text); line-height: 1.45; display: grid; grid-template: auto 1fr auto / 11.5rem minmax(0, 1fr); min-height: 100vh; }
.console main { max-width: 120rem; width: 100%; margin: 0; padding: 1.25rem 1.75rem 2.5rem; }
.console :is(main, h2):focus { outline: none; }
.skip { position: absolute; left: -100vw; top: 0; z-index: 2; padding: .5rem 1rem; background: var(--back); }
.skip:focus { left: 0; }
.top { grid-column: 1 / -1; display: flex; gap: 1.25rem; align-items: center; padding: .55rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--panel); }
.brand { font-weight: 650; color: var(--ink); text-decoration: none; letter-spacing: -.01em; }
.brand span { color: var(--soft); font-weight: 400; }
.where { font-weight: 600; font-size: var(--note); overflow-wrap: anywhere; }
.top button { padding: .1rem .6rem !important; font-size: var(--note); }
.who { margin-left: auto; color: var(--soft); white-space: nowrap; font-size: var(--note); }
.sections { border-right: 1px solid var(--line); padding: .9rem .6rem; }
.sections ul { list-style: none; margin: 0 0 .7rem; padding: 0; }
.sections p { margin: 0; padding: 0 .7rem; color: var(--soft); font-size: var(--note); }
.find input { width: 17rem; padding: .16rem .6rem; font: inherit; font-size: var(--note); }
.sections a { display: block; padding: .34rem .7rem; border-radius: 6px; color: var(--ink); text-decoration: none; }
.sections a:hover { background: var(--panel); }
.sections a[aria-current] { background: var(--panel); font-weight: 600; box-shadow: inset 2px 0 0 var(--mark); }
.console h1 { font-size: var(--figure); margin: 0; letter-spacing: -.015em; overflow-wrap: anywhere; }
.console h2 { font-size: var(--heading); margin: 1.9rem 0 .6rem; }
.console h3 { font-size: var(--heading); margin: 1rem 0 .3rem; }
.console a { text-underline-offset: 2px; text-decoration-thickness: 1px; }
.head { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center; margin: 0 0 1rem; }
.head .actions { margin-left: auto; display: flex; gap: .5rem; flex-wrap: wrap; align-items: center; }
.crumbs ol { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem; margin: 0 0 .35rem; padding: 0; color: var(--soft); font-size: var(--note); }
.crumbs li + li::before { content: "/"; margin-right: .3rem; color: var(--line); }
.crumbs a { color: var(--soft); }
.console .lead { font-size: 1em; max-width: 46rem; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
.tiles { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, auto)); gap: .7rem; margin: 0 0 1.25rem; padding: 0; }
.tiles li { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem .65rem; display: flex; flex-direction: column; gap: .05rem; min-width: 0; }
.tiles .name, .tiles .note { color: var(--soft); font-size: var(--note); }
.tiles strong { font-size: var(--figure); font-weight: 620; font-variant-numeric: tabular-nums; letter-spacing: -.01em; overflow-wrap: anywhere; color: var(--tone, inherit); }
.unit { color: var(--soft); font-weight: 400; font-size: var(--note); margin-left: .18em; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin: 0 0 1rem; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: start; border-bottom: 1px solid var(--line); font-weight: normal; }
table.data caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
table.data th, table.data td { padding: .3rem .55rem; white-space: nowrap; vertical-align: baseline; }
table.data thead th { white-space: normal; vertical-align: bottom; background: var(--panel); color: var(--soft); font-size: var(--note); font-weight: 550; border-bottom: 1px solid var(--line); }
table.data tbody tr:last-child > * { border-bottom: 0; }
table.data tbody tr:hover > * { background: var(--panel); }
table.data tbody th { font-weight: 550; background: var(--back); }
table.data :is(thead, tbody) th:first-child { position: sticky; left: 0; }
table.data tbody a:not(.button) { text-decoration: none; }
table.data tbody a:not(.button):hover, table.data tbody a:not(.button):focus-visible { text-decoration: underline; }
table.data :is(td:has(.badge), .badge) { white-space: normal; }
table.data code { font-size: var(--note); }
table.data .wide { white-space: normal; min-width: 14rem; max-width: 34rem; overflow-wrap: anywhere; }
table.data .cut { display: inline-block; max-width: 15rem; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom; }
table.data code.cut { max-width: 7.5rem; }
@media (min-width: 561px) { table.data tbody th > a { display: inline-block; max-width: 22rem; overflow: hidden; text-overflow: ellipsis; vertical-align: bottom; } }
.number { text-align: right !important; }
data { white-space: nowrap; }
.loss { color: var(--bad); }
.console th button.sort { font: inherit; color: inherit; text-align: inherit; background: none; border: 0; padding: 0; }
tbody tr:is(.bad, .warning) > :first-child { box-shadow: inset 3px 0 0 var(--tone); }
th button.sort:hover { color: var(--ink); text-decoration: underline; }
th[aria-sort] button.sort { color: var(--ink); }
th[aria-sort="ascending"] button.sort::after { content: " ↑"; }
th[aria-sort="descending"] button.sort::after { content: " ↓"; }
.filter { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: 0 0 .5rem; color: var(--soft); }
.filter input { max-width: 16rem; }
.pager { display: flex; gap: 1rem; align-items: baseline; margin: -.35rem 0 1rem; color: var(--soft); font-size: var(--note); }
.pager a[rel] { margin-left: auto; }
.tabs { display: flex; flex-wrap: wrap; gap: 0 .25rem; margin: 0 0 .9rem; border-bottom: 1px solid var(--line); }
.tabs a { white-space: nowrap; padding: .35rem .75rem; color: var(--soft); text-decoration: none; border-bottom: 2px solid transparent; margin-bottom: -1px; }
.tabs a[aria-current] { color: var(--ink); border-color: var(--mark); font-weight: 600; }
.badge { display: inline-block; padding: 0 .45em; border-radius: 99px; font-size: var(--note); line-height: 1.55; border: 1px solid var(--line); color: var(--soft); background: var(--back); white-space: nowrap; }
.badge:is(.good, .bad, .warning) { color: var(--tone); background: var(--tone-back); border-color: transparent; }
.console .notice { padding: .65rem .9rem; border: 1px solid var(--line); border-left: 3px solid var(--tone, var(--soft)); border-radius: 6px; margin: 0 0 1rem; background: var(--tone-back, var(--panel)); overflow-wrap: anywhere; max-width: 60rem; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
pre.command code { font-size: 1em; }
.second-line { color: var(--soft); font-weight: normal; margin-left: .4em; }
.notice ul { margin: 0; padding-left: 1.1rem; }
.notice p:last-child { margin: 0; }
.empty { border: 1px dashed var(--line); border-radius: 8px; padding: 1.4rem 1.5rem; margin: 0 0 1rem; color: var(--soft); }
.empty p { margin: 0 0 .3rem; }
.empty .empty-title { color: var(--ink); font-weight: 600; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .55rem 1.5rem; margin: 0 0 1.25rem; }
.facts dt { color: var(--soft); font-size: var(--note); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.steps { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .3rem 1.25rem; margin: 0 0 1.25rem; }
.steps div { display: contents; }
.steps dt { color: var(--soft); }
.steps dd { margin: 0; overflow-wrap: anywhere; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 0 1.5rem; align-items: start; }
form.stacked { max-width: 44rem; display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 0 1rem; align-items: start; }
form.stacked > * { grid-column: 1 / -1; }
form.inline, div.inline { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: start; margin: 0 0 1rem; }
.inline > .field ~ .buttons { padding-top: 1.48rem; }
.inline .field { margin: 0; }
form.stacked :is(.field.third, .group > .field.third) { grid-column: span 2; }
form.stacked > .group { display: grid; grid-template-columns: subgrid; }
form.stacked .group > *, form.stacked .group::details-content { grid-column: 1 / -1; }
form.stacked .group::details-content { display: grid; grid-template-columns: subgrid; }
form.stacked .entry { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 0 1rem; align-items: start; border: 1px solid var(--line); border-radius: 8px; margin: 0 0 .8rem; padding: .5rem .8rem .7rem; min-width: 0; }
form.stacked .entry > * { grid-column: 1 / -1; }
form.stacked .entry > .field.third { grid-column: span 2; }
.entry legend { color: var(--soft); font-size: var(--note); padding: 0 .3rem; }
.group > .help, .group > .buttons { margin: 0 0 .8rem; }
.console .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); padding: 0; border: 0; }
.group summary { cursor: pointer; font-weight: 550; margin: .3rem 0 .7rem; }
@media (max-width: 560px) { form.stacked .field { grid-column: 1 / -1 !important; } .inline:not(.dense) > .buttons { padding-top: 0 !important; } }
.head form.inline { margin: 0; }
form.dense { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.4rem, 1fr)); }
form.dense :is(input, select) { width: 100% !important; }
.live { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: 0 0 1rem; min-height: 2.2rem; }
.live [role=status]:not(:empty)::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .45em; border-radius: 50%; background: var(--soft); }
.live[data-on] [role=status]::before { background: var(--good); }
.beside { grid-template-columns: 11rem minmax(0, 44rem); }
.beside .tiles { grid-template-columns: 1fr; }
.scroll:has(tbody[id]):not(:has(tbody tr)), .scroll:has(tbody[id] tr) + .empty { display: none; }
form.single { display: inline; }
.field { margin: 0 0 .9rem; }
.field label { display: block; font-weight: 550; margin: 0 0 .2rem; }
.field label[data-needed]::after { content: " (required)"; color: var(--soft); font-weight: 400; }
.field .help { color: var(--soft); font-size: var(--note); margin: .2rem 0 0; }
.field .error { white-space: pre-line; color: var(--bad); margin: .25rem 0 0; font-weight: 500; }
.field .mark { font-size: var(--note); margin: .25rem 0 0; padding: .3rem .6rem; border-radius: 5px; overflow-wrap: anywhere; color: var(--tone); background: var(--tone-back); }
.field .mark strong { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: var(--note); }
input, textarea, select { border-color: var(--edge); border-radius: 6px; padding: .36rem .55rem; }
input[type=checkbox] { width: auto; }
input[type=file] { margin: 0 0 .4rem; }
.inline input[type=text] { width: 18rem; max-width: 100%; }
textarea { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: var(--note); resize: vertical; }
.field.bad input, .field.bad textarea, .field.bad select { border-color: var(--bad); }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; }
.buttons button { white-space: nowrap; }
.console :is(button, a.button) { border-color: var(--edge); border-radius: 6px; padding: .38rem .9rem; font-weight: 550; line-height: 1.45; }
.console :is(button, a.button).main { background: var(--mark); border-color: var(--mark); color: var(--onmark); }
.console button.grave { background: var(--bad); border-color: var(--bad); color: var(--back); }
.console :is(button, a.button):is(.main, .grave):hover { filter: brightness(.9); }
.console td :is(button, a.button) { padding: 0 .55rem; font-weight: 450; }
.secret { display: block; padding: .8rem 1rem; font-size: var(--heading); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; overflow-wrap: anywhere; user-select: all; }
.effect { padding-left: 1.2rem; margin: 0 0 1rem; max-width: 60rem; }
.effect li { margin: 0 0 .3rem; overflow-wrap: anywhere; }
@media (scripting: enabled) { code[data-command]:not([data-offered]) { display: none; } }
.console button.copy { padding: 0 .5rem; font-size: var(--note); font-weight: 450; margin: 0 .35rem; vertical-align: baseline; }
.console button.sign { border: 0; background: none; padding: 0 .1rem; margin: 0; line-height: 1; color: var(--soft); }
.sign::before { content: "⧉"; }
.sign.copied::before { content: "✓"; color: var(--good); }
@media (hover: hover) { .sign:not(:focus-visible, .copied) { opacity: 0; } tr:hover .sign { opacity: 1 !important; } }
.console .drawer { inset: 0 0 0 auto; margin: 0; width: min(48rem, 100%); max-width: none; height: 100%; max-height: none; overflow-y: auto; padding: 1.1rem 1.4rem 2rem; border: 0; border-left: 1px solid var(--line); background: var(--back); color: var(--ink); }
.console .drawer:not(:modal) { width: auto; height: auto; position: relative; border: 1px solid var(--line); border-radius: 8px; margin: 0 0 1.5rem; }
.drawer::backdrop { background: rgb(0 0 0 / .4); }
.drawer .head { margin-right: 4rem; }
.drawer .head h2 { margin: 0; }
.drawer .close { position: absolute; top: 1.2rem; right: 1.4rem; }
.console .notice[role=status]:has(.buttons) { position: sticky; top: 0; z-index: 1; }
.notice .buttons:empty { display: none; }
.question { font-size: var(--heading); font-weight: 600; margin: 0 0 .9rem; }
.old { color: var(--bad); text-decoration: line-through; }
.new { color: var(--good); }
.plot { margin: 0 0 1.25rem; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem .5rem; min-width: 0; }
.plot figcaption { font-weight: 550; margin: 0 0 .3rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem; margin: .1rem 0 0; padding: 0; font-size: var(--note); color: var(--soft); }
.legend b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
.legend li::before { content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .4em; border-radius: 2px; background: var(--tone); }
.plot svg { display: block; width: 100%; height: auto; }
.plot .grid { stroke: var(--line); }
.plot .tick { fill: var(--soft); font-size: 15px; font-variant-numeric: tabular-nums; }
.plot rect { fill: var(--tone); }
.plot polyline { fill: none; stroke-width: 2; stroke: var(--tone); }
.plot rect.reach { fill: transparent; }
.plot g:hover rect.reach { fill: var(--panel); }
.plot details { color: var(--soft); font-size: var(--note); }
.plot details .scroll { margin-top: .5rem; max-height: 18rem; }
.plot summary { cursor: pointer; width: max-content; }
.spark { width: 4.5rem; height: .95em; vertical-align: -.1em; }
.spark rect { fill: var(--first); }
.bottom { grid-column: 1 / -1; margin: 0; padding: .5rem 1.25rem; display: flex; justify-content: space-between; gap: 1rem; font-size: var(--note); }
.columns.three { grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); }
.console pre.command { padding: .55rem .8rem; margin: .4rem 0 1rem; max-width: 60rem; }
/* Labels of a narrow plot stay readable. */
.plot { container-type: inline-size; }
@container (max-width: 30rem) { .plot .tick { font-size: 20px; } }
@container (max-width: 20rem) { .plot .tick { font-size: 24px; } }
@media (max-width: 1500px) {
  table.data :is(th, td) { padding-inline: .35rem; }
  table.data tr:has(> :nth-child(12)) > * { padding-inline: .18rem; }
  table.data .cut { max-width: 6.5rem; }
  table.data .second-line { display: block; margin: 0; font-size: var(--note); }
  table.data .second-line .cut { max-width: 7.5rem; }
}
@media (max-width: 760px) {
  body.console { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto auto 1fr auto; }
  .top { flex-wrap: wrap; gap: .2rem 1rem; }
  .sections { border-right: 0; border-bottom: 1px solid var(--line); padding: .3rem .6rem; overflow-x: auto; }
  .sections { display: flex; }
  .sections ul { display: flex; margin: 0; }
  .sections p { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .find { order: 9; flex-basis: 100%; }
  .find input { width: 100%; }
  .sections a { white-space: nowrap; }
  .sections a[aria-current] { box-shadow: inset 0 -2px 0 var(--mark); }
  .console main { padding: 1rem; }
  .beside { grid-template-columns: minmax(0, 1fr); }
  .beside .tiles { grid-template-columns: repeat(3, 1fr); }
}
/* On a phone each table row is a card: its name, then each column with its title. The overview fits three phone screens. */
@media (max-width: 560px) {
  [id^=overview-] .scroll { max-height: 11.5rem; overflow-y: auto; }
  #overview-now .tiles { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .4rem; }
  #overview-now .tiles li { padding: .4rem .5rem; }
  #overview-now .plot { margin: 0 0 .5rem; padding: .4rem .6rem; }
  table.cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.cards :is(tbody, tr, th, td) { display: block; }
  table.cards tbody tr { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  table.cards tbody tr:last-child { border-bottom: 0; }
  table.cards tbody :is(th, td) { border: 0; padding: .12rem .8rem; position: static; white-space: normal; overflow-wrap: anywhere; }
  table.cards tbody td { position: relative; padding-left: 9.5rem; text-align: start !important; }
  table.cards tbody td:empty { display: none; }
  table.cards .badge { white-space: normal; }
  table.cards tbody td::before { content: attr(data-label); position: absolute; left: .8rem; width: 8.5rem; color: var(--soft); font-size: var(--note); }
  table.cards :is(.wide, .cut, code.cut) { min-width: 0; max-width: none; white-space: normal; }
}
@media (prefers-reduced-motion: no-preference) { button, a { transition: filter .12s; } }
@media print {
  :root { color-scheme: light; ${colours.light} }
  .top, .sections, .crumbs, .bottom, .filter, form, .actions, .skip, .lead, details, pre.command { display: none !important; }
  body.console { display: block; }
  .console main { padding: 0; }
  .scroll { overflow: visible; border: 0; }
  .tiles strong { font-size: var(--heading); }
  table.data :is(th, td) { padding-block: .15rem; }
  tr, .tiles li { break-inside: avoid; }
}
`;
