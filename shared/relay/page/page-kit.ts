/** Markup and styles that both customers' pages share; the console and reports use the colours and controls. */
import { html as markup, raw } from 'hono/html';

export type Markup = ReturnType<typeof markup>;

export const nothing: Markup = raw('');

/** Text written by people, in the direction of its own script. */
export const isolateDirection = (text: string): Markup => markup`<bdi>${text}</bdi>`;

export const renderCode = (text: string): Markup => markup`<code>${text}</code>`;

/** These pages load no data while they render, so markup is never a promise. */
export function textOf(markup: Markup): string {
  if (markup instanceof Promise) throw new TypeError('markup of a page must not wait');
  return markup.toString();
}

export const joinMarkup = (pieces: readonly (Markup | readonly Markup[])[], separator: string): unknown[] =>
  pieces.flatMap((piece, at) => (at === 0 ? [piece] : [raw(separator), piece]));

/** The beginning of both pages. Optional end tags are left out: a page with hundreds of models stays small. */
export const renderHead = (title: string, style: string, lang: string): Markup => markup`<!doctype html>
<html lang="${lang}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${raw(style)}</style>`;

/**
 * The style sheet of the customers' pages. The content security policy allows it by its hash, which `page.ts` has. Its colours,
 * texts and controls are those of the operators' console too, and its colours those of reports.
 */

export const colours = {
  light:
    '--ink: #16191d; --soft: #57606a; --line: #dfe3e8; --back: #fff; --panel: #f6f7f9; --mark: #3b46d6; --onmark: #fff; --warn: #8a4b00; --warnback: #fff6e6; --bad: #b3261e; --good: #116b3a;',
  dark: '--ink: #e8eaed; --soft: #a0a8b2; --line: #2f353d; --back: #111418; --panel: #191d22; --mark: #9da6ff; --onmark: #11141c; --warn: #f5c26b; --warnback: #2a2213; --bad: #ff8a80; --good: #6fd69a;',
};

const textFont =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", sans-serif';

const base = `
:root { color-scheme: light dark; ${colours.light} }
@media (prefers-color-scheme: dark) {
  :root { ${colours.dark} }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 4.5rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 ${textFont}; -webkit-text-size-adjust: 100%; }
`;

const frame = `.top, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
.top { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; padding-block: .9rem; }
.top nav { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; align-items: center; }
.top nav a { text-decoration: none; color: var(--soft); }
.top nav a:hover { color: var(--ink); }
.brand { display: inline-flex; gap: .55rem; align-items: center; font-weight: 650; text-decoration: none; color: var(--ink); overflow-wrap: anywhere; }
.brand::before { content: ""; width: .95rem; height: .95rem; flex: none; border-radius: 4px; background: var(--mark); }
main { padding-bottom: 3rem; }
`;

const elements = `h1 { margin: 2.25rem 0 .4rem; font-size: clamp(1.8rem, 5vw, 2.6rem); line-height: 1.15; letter-spacing: -.02em; }
h2 { margin: 3rem 0 .5rem; font-size: 1.35rem; letter-spacing: -.01em; }
h3 { margin: 1.75rem 0 .4rem; font-size: 1rem; }
p { margin: 0 0 .75rem; }
small { font-size: .85em; }
h2 small, .soft, .families small { color: var(--soft); font-weight: normal; }
.lead { font-size: 1.1rem; color: var(--soft); }
a { color: var(--mark); }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; border-radius: 4px; }
code, pre, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em; }
pre { margin: 0; padding: .9rem 1rem; overflow-x: auto; line-height: 1.5; }
button, .button, input, select, textarea { font: inherit; color: inherit; }
button, .button, .top nav a.button { display: inline-block; padding: .4rem .9rem; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); color: var(--ink); cursor: pointer; text-decoration: none; }
button:hover, .button:hover { border-color: var(--soft); }
button.main { background: var(--mark); border-color: var(--mark); color: var(--onmark); font-weight: 600; }
button:disabled { opacity: .55; cursor: default; }
button.copy { padding: .15rem .6rem; font-size: .8rem; background: var(--back); }
input, select, textarea { width: 100%; padding: .5rem .7rem; border: 1px solid var(--line); border-radius: 8px; background: var(--back); }
::placeholder { color: var(--soft); opacity: 1; }
[hidden] { display: none !important; }
`;

const components = `.base { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; margin: 1.5rem 0 0; padding: .8rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; }
.base span { color: var(--soft); }
.base code { flex: 1 1 12rem; overflow-wrap: anywhere; font-weight: 600; font-size: 1rem; }
.notices { margin: 1.25rem 0 0; padding: 0; list-style: none; display: grid; gap: .5rem; }
.notices li { padding: .7rem 1rem; border: 1px solid var(--line); border-left: 4px solid var(--warn); border-radius: 8px; background: var(--warnback); overflow-wrap: anywhere; }
.notices p { margin: .25rem 0 0; }
.notices small { color: var(--warn); }
.rest { padding: .1rem .45rem; border-radius: 99px; background: var(--warnback); color: var(--warn); font-size: .75rem; font-weight: 600; }
#search { position: sticky; top: 0; z-index: 1; padding: .5rem 0; background: var(--back); }
.families { display: flex; flex-wrap: wrap; gap: .4rem; margin: .25rem 0 1rem; }
.families a { padding: .2rem .65rem; border: 1px solid var(--line); border-radius: 99px; font-size: .9rem; text-decoration: none; color: var(--ink); overflow-wrap: anywhere; }
.families a:hover { border-color: var(--mark); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .5rem .75rem .5rem 0; text-align: start; vertical-align: baseline; border-top: 1px solid var(--line); font-weight: normal; overflow-wrap: anywhere; }
thead th { border-top: 0; color: var(--soft); font-size: .85rem; }
.models td, .models thead th + th { width: 8.5rem; padding-right: 0; text-align: right; }
.models td small { display: block; color: var(--soft); }
.models .f th { padding-top: 1.6rem; border-top: 0; font-weight: 650; font-size: 1.05rem; }
.models .t th { padding-left: 1rem; color: var(--soft); font-size: .9rem; }
.models .t th, .models .t td { border-top: 0; padding-top: 0; }
.aliases th { width: 30%; }
.facts { display: grid; margin-block: 1rem 0; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .35rem 1.25rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
th a { text-decoration: none; }
th a:hover { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: 1rem; }
.card { padding: 1rem 1.1rem; border: 1px solid var(--line); border-radius: 10px; overflow-wrap: anywhere; }
.card h3 { margin: 0; color: var(--soft); font-weight: 600; font-size: .9rem; }
.card .price { margin: .1rem 0 .5rem; font-size: 1.5rem; font-weight: 650; }
.card .price small { font-size: .9rem; font-weight: normal; color: var(--soft); }
.card ul { margin: 0; padding-left: 1.1rem; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 10px; background: var(--panel); overflow: hidden; }
summary { padding: .6rem 1rem; cursor: pointer; font-weight: 600; }
details > pre { border-top: 1px solid var(--line); }
details { position: relative; }
details > .copy { position: absolute; right: .6rem; margin-top: .6rem; }
footer { padding-block: 1.25rem 2rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) {
  .top nav a.button { padding: .2rem .7rem; }
  .models thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .models tr { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: .55rem 0; border-top: 1px solid var(--line); }
  .models th, .models td { padding: 0; border: 0; width: auto; text-align: start; }
  .models tr > th { flex: 1 0 100%; }
  .models td:not([colspan])::before { content: "in "; color: var(--soft); }
  .models td:not([colspan]) ~ td::before { content: "cached "; }
  .models td:not([colspan]) ~ td ~ td::before { content: "out "; }
  :lang(zh) .models td:not([colspan])::before { content: "输入 "; }
  :lang(zh) .models td:not([colspan]) ~ td::before { content: "缓存 "; }
  :lang(zh) .models td:not([colspan]) ~ td ~ td::before { content: "输出 "; }
  .models .t { border-top: 0; padding-top: 0; }
  .models .t th { padding-left: 0; }
  .models .f { border-top: 0; padding: 1.4rem 0 .4rem; }
  .models .f th { padding: 0; }
  .aliases th { width: 40%; }
}
`;

export const sharedStyle = base + elements;

export const pageStyle = base + frame + elements + components;
