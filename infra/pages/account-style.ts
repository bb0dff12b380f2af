/** What the account's page has on top of the shared style sheet. */

export const accountStyle = `
form { display: grid; gap: .5rem; justify-items: start; }
form label { font-weight: 600; font-size: .9rem; }
form#sign-form { max-width: 30rem; padding: 1.25rem; background: var(--panel); }
.after { margin-top: 1rem; }
.check { display: flex; gap: .5rem; align-items: center; font-weight: normal; }
.check input { width: auto; }
.bar { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: .5rem 0 1rem; }
.bar label { display: inline-flex; gap: .4rem; align-items: center; font-size: .9rem; }
.bar select { width: auto; }
label.button { position: relative; overflow: hidden; font-weight: normal; font-size: 1rem; }
label.button input { position: absolute; inset: 0; opacity: 0; cursor: pointer; }
label.button:focus-within { outline: 2px solid var(--mark); outline-offset: 2px; }
#figures { margin: 1rem 0 0; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
nav.families { margin: 1.25rem 0 0; }
#figures dt { color: var(--soft); font-size: .9rem; }
#figures dd { margin: 0; font-variant-numeric: tabular-nums; }
.price.low { color: var(--bad); }
.facts { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.plain { margin: 0; padding-left: 1.1rem; }
progress { display: block; width: min(24rem, 100%); accent-color: var(--mark); }
.wide { overflow-x: auto; }
.rows { min-width: 58rem; font-size: .9rem; }
.rows td:nth-child(1), .rows td:nth-child(n + 4) { white-space: nowrap; }
.rows td:nth-child(3) { white-space: pre; }
.rows td:nth-child(7) { color: var(--soft); }
.rows td:nth-child(6) { font-weight: 600; }
.numbers td, .numbers thead th + th { text-align: right; padding-right: 0; padding-left: 1rem; white-space: nowrap; }
.numbers th { min-width: 9rem; }
#plot { min-height: 220px; overflow: hidden; margin-bottom: 1rem; }
#plot svg { display: block; max-width: 100%; }
#plot text { fill: var(--soft); font-size: 12px; }
#plot .grid { stroke: var(--line); }
.c0 { fill: #4c5fd7; background: #4c5fd7; } .c1 { fill: #d9782d; background: #d9782d; } .c2 { fill: #2a9d76; background: #2a9d76; }
.c3 { fill: #b04fb8; background: #b04fb8; } .c4 { fill: #c9a227; background: #c9a227; } .c5 { fill: #3a9bc4; background: #3a9bc4; } .c6 { fill: #8a929c; background: #8a929c; }
.swatch { display: inline-block; width: .7rem; height: .7rem; margin-right: .5rem; border-radius: 3px; }
#turns { display: grid; gap: .75rem; margin: .75rem 0; }
.turn { padding: .7rem 1rem; border: 1px solid var(--line); border-radius: 10px; min-width: 0; }
.turn.you { background: var(--panel); }
.turn h3 { margin: 0 0 .25rem; color: var(--soft); font-size: .8rem; font-weight: 600; }
.turn .text, .turn .call { white-space: pre-wrap; overflow-wrap: anywhere; }
.turn .meta { margin: .4rem 0 0; font-size: .85rem; overflow-wrap: anywhere; }
.turn .meta:empty { display: none; }
.turn .call { margin: .5rem 0; border: 1px solid var(--line); border-radius: 8px; }
.turn details .text { padding: 0 1rem .7rem; color: var(--soft); }
.turn.model .pictures { display: grid; gap: .5rem; justify-items: start; margin-top: .5rem; }
.turn.model .pictures[hidden] { display: none; }
.pictures p { margin: 0; overflow-wrap: anywhere; }
.turn.model img { max-width: 100%; max-height: 30rem; border-radius: 8px; }
.turn.you img, #pictures img { max-width: 12rem; max-height: 8rem; border-radius: 8px; }
#pictures { display: flex; flex-wrap: wrap; gap: .5rem; }
#pictures span { display: grid; gap: .25rem; }
#ask, #ask details { width: 100%; }
#model { max-width: 26rem; }
@media (max-width: 40rem) {
  .rows { min-width: 0; }
  .rows thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .rows tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .6rem 0; border-top: 1px solid var(--line); }
  .rows td { padding: 0; border: 0; }
  .rows td:empty { display: none; }
  .rows td:nth-child(2), .rows td:nth-child(7) { flex: 1 0 100%; }
  .rows td:nth-child(1) { flex: 1; order: -2; color: var(--soft); }
  .rows td:nth-child(6) { order: -1; }
}
.inner { display: grid; gap: .4rem; padding: 0 1rem 1rem; }
`;
