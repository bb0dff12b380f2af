/**
 * Builds the script of the models page and the whole account page, each with its hash, and adds the OpenAPI document. Builds and
 * tests replace shared/relay/page/built-pages.ts by the result.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import { accountInEnglish as words, type AccountTexts } from '../../shared/relay/page/english.ts';
import { colours, pageStyle, renderHead, textOf } from '../../shared/relay/page/page-kit.ts';

const root = path.resolve(import.meta.dirname, '../..');
const place = /[\\/]shared[\\/]relay[\\/]page[\\/]built-pages\.ts$/;

export async function buildPages(): Promise<Record<string, string>> {
  const [script, accountScript, document] = await Promise.all([
    bundleScript('page'),
    bundleScript('account'),
    readFile(path.join(root, 'docs/openapi.json'), 'utf8'),
  ]);
  const openapiDocument = JSON.stringify(JSON.parse(document));
  const style = pageStyle + accountStyle;
  const name = createHash('sha256').update(script).digest('hex').slice(0, 16);
  return {
    pageScript: script,
    pageScriptPath: `/assets/page-${name}.js`,
    pageStyleHash: hashOf(pageStyle),
    accountPageHtml: renderAccount({ style, script: accountScript }),
    accountScriptHash: hashOf(accountScript),
    accountStyleHash: hashOf(style),
    modelsLink,
    openapiDocument,
    openapiTag: `"${hashOf(openapiDocument)}"`,
  };
}

const buildModule = async (): Promise<string> =>
  Object.entries(await buildPages())
    .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
    .join('');

/** For the build of functions. */
export const withBuiltPages: Plugin = {
  name: 'built pages',
  setup: (plugin) => plugin.onLoad({ filter: place }, async () => ({ contents: await buildModule() })),
};

interface KeepsModules {
  defineCacheKeyGenerator: (keyOf: (module: { id: string }) => false | undefined) => void;
}

/** For tests. */
export const testsWithBuiltPages = {
  name: 'built pages',
  load: (id: string) => (place.test(id) ? buildModule() : undefined),
  /** Vitest caches modules by their own text, but this one is built from others: pages of an earlier run would be tested. */
  configureVitest(context: KeepsModules): void {
    context.defineCacheKeyGenerator(({ id }) => (place.test(id) ? false : undefined));
  },
};

async function bundleScript(name: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`infra/pages/browser/${name}.ts`],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  const text = outputFiles[0]?.text.trim() ?? '';
  if (/<\/script|<!--/i.test(text)) throw new Error(`the script ${name} would end its own element`);
  return text;
}

const hashOf = (text: string): string => `sha256-${createHash('sha256').update(text).digest('base64')}`;

// The markup of the account's page. It holds no data: the script fetches all with the customer's key. Its texts are English until
// the script shows them in the language of the browser.

type PlainText = {
  [Key in keyof AccountTexts]: AccountTexts[Key] extends string ? Key : never;
}[keyof AccountTexts];

/** The end of a start tag, and its text. */
const t = (key: PlainText): string => ` data-t="${key}">${words[key]}`;
const label = (key: PlainText): string => ` data-label="${key}" aria-label="${words[key]}"`;
const hint = (key: PlainText): string => ` data-hint="${key}" placeholder="${words[key]}"`;
const renderHeads = (...keys: PlainText[]): string =>
  `<thead><tr>${keys.map((key) => `<th scope="col"${t(key)}`).join('')}</thead>`;
const option = (value: string, key: PlainText): string => `<option value="${value}"${t(key)}</option>`;

/** Removed where the models page is disabled. */
const modelsLink = `<a href="/"${t('models')}</a>`;

const renderAccount = ({ style, script }: { style: string; script: string }): string =>
  `${textOf(renderHead(words.account, style, words.lang))}
<header class="top"><span class="brand" id="host"></span><nav>${modelsLink} <button type="button" id="language"></button></nav></header>
<main>
<h1${t('account')}</h1>
<p class="card" id="payment" role="status" hidden></p>
<noscript><p>This page needs JavaScript. You can also call <code>GET /v1/account</code> and <code>GET /v1/account/usage</code> with your key.</p>
<p lang="zh-CN">本页面需要启用 JavaScript。您也可以使用密钥调用 <code>GET /v1/account</code> 和 <code>GET /v1/account/usage</code> 查询。</p></noscript>
${signMarkup}
<div id="open" hidden>
<p class="bar"><span><b><bdi id="whose"></bdi></b> <span${t('key')}</span> <code id="hint"></code></span> <button type="button" id="refresh"${t('refresh')}</button> <button type="button" id="leave"${t('forget')}</button> <span id="open-state" role="status"></span></p>
<ul class="notices" id="notices"${label('notices')} hidden></ul>
<dl class="cards" id="figures"></dl>
<form class="bar" id="top-up" hidden><label for="top-up-amount"${t('topUpAmount')}</label> <input id="top-up-amount" type="number" min="5" max="50000" step="0.01" value="50" required> <button class="main"${t('pay')}</button> <span id="top-up-bonus"></span> <span id="top-up-state" role="status"></span></form>
<p class="bar" id="buy-plans"></p>
<form class="bar" id="auto" hidden><label for="auto-below"${t('autoBelow')}</label> <input id="auto-below" type="number" min="1" max="50000" step="0.01" value="20" required> <label for="auto-amount"${t('autoAmount')}</label> <input id="auto-amount" type="number" min="5" max="50000" step="0.01" value="50" required> <label for="auto-monthly"${t('autoMonthly')}</label> <input id="auto-monthly" type="number" min="5" max="1000000" step="0.01" value="200" required> <button${t('autoOn')}</button> <button type="button" id="auto-off" hidden${t('autoOff')}</button> <span id="auto-state" role="status"></span></form>
<details><summary${t('redeemCode')}</summary><form class="bar inner" id="redeem"><input id="redeem-code"${label('redeemCode')} autocomplete="off" autocapitalize="characters" spellcheck="false" size="26" required> <button class="main"${t('redeem')}</button> <span id="redeem-state" role="status"></span></form></details>
<nav class="families"${label('parts')}><a href="#usage"${t('usage')}</a><a href="#statement"${t('statement')}</a><a href="#try"${t('tryModel')}</a><a href="#ledger"${t('ledger')}</a><a href="#keys" id="to-keys" hidden${t('keys')}</a><a href="#key-limits"${t('thisKey')}</a></nav>
<section id="plan" hidden><h2${t('plan')}</h2><div id="plan-parts"></div></section>
<section id="budgets" hidden><h2${t('budgets')}</h2><div id="budgets-parts"></div></section>
<section id="prices" hidden><h2${t('ownPrices')}</h2><ul class="plain" id="prices-parts"></ul></section>
<section id="changes" hidden><h2${t('announced')}</h2><ul class="plain" id="changes-parts"></ul></section>
${usageMarkup}
${statementMarkup}
${tryMarkup}
${ledgerMarkup}
${keysMarkup}
<section id="errors" hidden><h2${t('errors')}</h2><p class="soft"${t('errorsLead')}</p><table>${renderHeads('hour', 'code', 'calls')}<tbody id="errors-parts"></tbody></table></section>
<section id="key-limits"><h2${t('thisKey')}</h2><dl class="facts" id="key-limits-parts"></dl></section>
</div>
</main>
<script>${script}</script>
`;

const signMarkup = `<section id="sign" hidden>
<p class="lead"${t('lead')}</p>
<form id="sign-form" class="card">
<label for="key"${t('key')}</label>
<input id="key" type="password" placeholder="sk-..." autocomplete="off" autocapitalize="off" spellcheck="false" required>
<label class="check"><input id="keep" type="checkbox"> <span${t('keep')}</span></label>
<button class="main"${t('open')}</button> <span id="sign-state" role="status"></span>
</form>
<p class="soft after"${t('keySent')}</p>
</section>`;

const tryMarkup = `<section id="try"><h2${t('tryModel')}</h2>
<div id="turns" aria-live="polite"></div>
<form id="ask">
<label for="model"${t('model')}</label><input id="model" list="names" autocomplete="off" spellcheck="false"><datalist id="names"></datalist>
<label for="prompt"${t('message')}</label><textarea id="prompt" rows="3" dir="auto"${hint('messageHint')}></textarea>
<div id="pictures"></div>
<details><summary${t('options')}</summary><div class="inner"><label for="system"${t('system')}</label><textarea id="system" rows="2" dir="auto"></textarea>
<label for="tools"${t('tools')}</label><textarea id="tools" class="mono" rows="4" spellcheck="false" placeholder='[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]'></textarea>
<label for="temperature"${t('temperature')}</label><input id="temperature" type="number" min="0" max="2" step="any"${hint('asUsual')}>
<label for="max_completion_tokens"${t('limit')}</label><input id="max_completion_tokens" type="number" min="1"${hint('asUsual')}></div></details>
<p class="bar"><button class="main" id="send"${t('send')}</button> <button type="button" id="stop" hidden${t('stop')}</button> <label class="button"><span${t('addPicture')}</span> <input id="files" type="file" accept="image/png,image/jpeg,image/webp,image/gif" multiple></label> <button type="button" id="clear"${t('newConversation')}</button> <span id="ask-state" role="status"></span></p>
</form></section>`;

const usageMarkup = `<section id="usage"><h2${t('usage')}</h2>
<p class="bar"><label><span${t('days')}</span> <select id="days"><option>7<option selected>14<option>30</select></label> <label><span${t('show')}</span> <select id="measure">${option('charge', 'byCharge')}${option('calls', 'byCalls')}${option('tokens', 'byTokens')}</select></label> <span id="usage-state" role="status"></span> <span class="soft"${t('utcDays')}</span></p>
<div id="plot"></div>
<div class="wide" tabindex="0" role="region"${label('usageByModel')}><table class="numbers">${renderHeads('model', 'charges', 'calls', 'tokensIn', 'tokensOut')}<tbody id="by-model"></tbody></table></div></section>`;

const ledgerMarkup = `<section id="ledger"><h2${t('ledger')}</h2>
<p class="bar"><label><span${t('endUser')}</span> <input id="of-user" autocomplete="off"></label> <label><span${t('tag')}</span> <input id="of-tag"${hint('tagHint')} autocomplete="off"></label></p>
<p class="bar"><button type="button" id="newer" disabled${t('newer')}</button> <button type="button" id="older" disabled${t('older')}</button> <span id="ledger-state" role="status"></span> <button type="button" id="save"${t('csv')}</button> <span id="save-state" role="status"></span></p>
<div class="wide" tabindex="0" role="region"${label('ledger')}><table class="rows">${renderHeads('time', 'model', 'tokens', 'firstContent', 'end', 'charge', 'id')}<tbody id="rows"></tbody></table></div></section>`;

const renderField = (name: string, key: PlainText, rest: string): string =>
  `<div><label for="key-${name}"${t(key)}</label><input id="key-${name}" autocomplete="off" ${rest}></div>`;

const keysMarkup = `<section id="keys" hidden><h2${t('keys')}</h2>
<p class="soft"${t('keysLead')}</p>
<div class="card" id="made" hidden><p${t('made')}</p><p><code id="made-key"></code></p><p class="bar"><button type="button" class="main" id="copy-made"${t('copy')}</button> <button type="button" id="hide-made"${t('hide')}</button></p></div>
<ul class="cards" id="key-list"></ul>
<p id="no-keys" hidden${t('noKeys')}</p>
<p class="bar"><button type="button" id="new-key"${t('newKey')}</button> <span id="keys-state" role="status"></span></p>
<form class="card" id="key-form" hidden><div class="fields">
${renderField('name', 'keyName', 'required maxlength="100"')}
${renderField('models', 'keyModels', hint('asThisKey').trim())}
${renderField('amount', 'keyAmount', `type="number" min="0" step="any"${hint('asThisKey')}`)}
<div><label for="key-period"${t('keyPeriod')}</label><select id="key-period">${option('month', 'month_')}${option('day', 'day_')}</select></div>
${renderField('rpm', 'aMinute', `type="number" min="1"${hint('asThisKey')}`)}
${renderField('max_concurrency', 'atOnce', `type="number" min="1"${hint('asThisKey')}`)}
${renderField('expires', 'keyEnd', 'type="date"')}
<div><label for="key-store"${t('keyStore')}</label><select id="key-store">${option('', 'asThisKey')}${option('yes', 'yes')}${option('no', 'no')}</select></div>
</div><p class="bar"><button class="main"${t('save')}</button> <button type="button" id="cancel-key"${t('cancel')}</button></p></form>
</section>`;

const statementMarkup = `<section id="statement"><h2${t('statement')}</h2>
<p class="bar"><label><span${t('month')}</span> <select id="month"></select></label> <button type="button" id="show-statement"${t('show')}</button> <span id="statement-state" role="status"></span></p>
<div id="paper"></div></section>`;

/** Additions to the shared style sheet. */

const accountStyle = `
form { display: grid; gap: .5rem; justify-items: start; }
form label { font-weight: 600; font-size: .9rem; }
form#sign-form { max-width: 30rem; padding: 1.25rem; background: var(--panel); }
.after { margin-top: 1rem; }
.check { display: flex; gap: .5rem; align-items: center; font-weight: normal; }
.check input { width: auto; }
.bar { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: .5rem 0 1rem; }
.bar label { display: inline-flex; gap: .4rem; align-items: center; font-size: .9rem; white-space: nowrap; }
.bar select { width: auto; }
label.button { position: relative; overflow: hidden; font-weight: normal; font-size: 1rem; }
label.button input { position: absolute; inset: 0; opacity: 0; cursor: pointer; }
label.button:focus-within { outline: 2px solid var(--mark); outline-offset: 2px; }
#figures { margin: 1rem 0 0; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
nav.families { margin: 1.25rem 0 0; }
#figures dt { color: var(--soft); font-size: .9rem; }
#figures dd { margin: 0; font-variant-numeric: tabular-nums; }
.price.low, .wrong, .turn .meta.wrong { color: var(--bad); }
#figures dd.soft { font-size: .85rem; }
.notices .low { border-left-color: var(--bad); }
.plain { margin: 0; padding-left: 1.1rem; }
progress { display: block; width: min(24rem, 100%); accent-color: var(--mark); }
.wide { overflow-x: auto; }
.rows { min-width: 58rem; font-size: .9rem; }
.rows thead th, .rows td:nth-child(1), .rows td:nth-child(4) { white-space: nowrap; }
/* An id breaks into two lines before a row is wider than the page; what a model was asked for is read, not spelt. */
.rows td:nth-child(2) { min-width: 6.5rem; }
.rows td:nth-child(5) { overflow-wrap: normal; }
.rows td:nth-child(7) code { display: block; min-width: 13ch; }
.rows td:nth-child(3) { white-space: pre; }
.rows td:nth-child(7) { color: var(--soft); }
.rows td:nth-child(6) { font-weight: 600; white-space: pre; }
.rows th:nth-child(6), .rows td:nth-child(6) { text-align: right; }
.rows td.wrong { color: var(--bad); }
.inner input { max-width: 14rem; }
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
#key-list { padding: 0; list-style: none; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }
#key-list h3 { display: flex; flex-wrap: wrap; gap: .25rem .6rem; align-items: center; color: var(--ink); font-size: 1rem; }
#key-list .bar { margin: 0; }
.rest.usable { background: var(--panel); color: var(--good); }
#made-key { overflow-wrap: anywhere; font-size: 1rem; }
#key-form, .fields { width: 100%; }
.fields { display: grid; gap: .75rem 1rem; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); }
form.bar { display: flex; margin-top: 1rem; }
#top-up-amount, #auto input { width: 8rem; }
#paper dd { white-space: pre-line; }
#paper .wide { margin-top: 1.5rem; }
#paper tbody tr:first-child > *, #paper tbody tr:last-child > * { font-weight: 650; }
@media print {
  :root { color-scheme: light; ${colours.light} }
  main:has(#paper > *) { > :not(#open), > #open > :not(#statement), #statement > :not(#paper), .bar { display: none !important; } }
  body:has(#paper > *) > .top { display: none; }
  .wide { overflow: visible; }
  tr { break-inside: avoid; }
}
@media (max-width: 40rem) {
  .wide thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .wide tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .5rem 0; border-top: 1px solid var(--line); }
  .wide th, .wide td { padding: 0; border: 0; }
  .wide td:empty { display: none; }
  .numbers tr > th { flex: 1 0 100%; }
  .numbers td::before { content: attr(data-name) " "; color: var(--soft); font-weight: normal; }
  .rows { min-width: 0; }
  .rows td:nth-child(2), .rows td:nth-child(7) { flex: 1 0 100%; }
  .rows td:nth-child(1) { flex: 1; order: -2; color: var(--soft); }
  .rows td:nth-child(6) { order: -1; }
}
.inner { display: grid; gap: .4rem; padding: 0 1rem 1rem; }
`;
