/** The page about the relay, in the format that the client requests. */
import {
  type PageFacts,
  dateWords,
  yuan,
  familiesOf,
  type Family,
  priceLines,
  type PriceLine,
} from './page-facts.ts';
import { pageStyleHash, pageScriptPath } from './built-pages.ts';
import { code, escaped, headOf, ownDirection, pageStyle, unescaped } from './page-kit.ts';
import { snippets } from './page-snippets.ts';
import type { PlanEntry } from '../../wire/public-api.ts';

/** HTML for browsers; plain text for clients that do not accept HTML explicitly (curl). */
export function page(facts: PageFacts, accept: string): { body: string; headers: Record<string, string> } {
  const headers = { vary: 'accept, accept-language', 'x-content-type-options': 'nosniff' };
  const html = pageHtml(facts);
  if (!accept.includes('text/html'))
    return { body: plain(html), headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' } };
  return {
    body: html,
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      // Only the page's own style and script may load or run, even if a table row contains markup.
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src '${pageStyleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
      'referrer-policy': 'no-referrer',
    },
  };
}

// The page for a browser. It is whole without its script, which adds search and copying.

function pageHtml(facts: PageFacts): string {
  const { baseUrl, model, plans, accountPage, words } = facts;
  const host = /^https?:\/\/([^/]+)/.exec(baseUrl)?.[1] ?? 'LLM relay';
  const [language, lang, name] = words.lang === 'en' ? ['zh', 'zh-CN', '中文'] : ['en', 'en', 'English'];
  const query = model === undefined ? '' : `&amp;model=${escaped(encodeURIComponent(model))}`;
  const links = [
    `<a href="/#models">${words.models}</a>`,
    ...(plans.length > 0 ? [`<a href="/#plans">${words.plans}</a>`] : []),
    `<a href="#connect">${words.connect}</a>`,
    `<a class="language" href="?lang=${language}${query}" lang="${lang}">${name}</a>`,
    ...(accountPage ? [`<a class="button" href="/account">${words.account}</a>`] : []),
  ];
  return `${headOf(`${model ?? words.title} · ${host}`, pageStyle, words.lang)}
<script src="${pageScriptPath}" defer></script>
<header class="top"><a class="brand" href="/">${escaped(host)}</a><nav aria-label="${words.page}">${links.join('')}</nav></header>
<main data-search="${words.search}" data-copy="${words.copy}" data-copied="${words.copied}" data-base="${model === undefined ? words.copyBase : words.copyName}" data-example="${words.copyExample}">
${model === undefined ? allModels(facts) : oneModel(model, facts)}
${connectSection(facts)}
</main>
${foot(facts)}`;
}

const allModels = (facts: PageFacts): string => {
  const { baseUrl, models, words } = facts;
  return `<h1>${models.length > 1 ? words.headline(models.length) : words.noModels}</h1>
<p class="lead">${words.lead}</p>
${shownBase(words.baseUrl, baseUrl)}
${noticeList(facts)}
${modelSection(facts)}
${planSection(facts)}`;
};

/** With a button that copies it, where there is a script. */
const shownBase = (name: string, text: string): string =>
  `<p class="base"><span>${name}</span> <code id="base">${escaped(text)}</code></p>`;

/** What is known of one model. */
function oneModel(model: string, facts: PageFacts): string {
  const { words, plans, modelFacts } = facts;
  const known = Object.hasOwn(modelFacts, model) ? modelFacts[model]! : {};
  const kinds = (names: readonly string[] | undefined) =>
    names?.map((name) => escaped(words.kind(name))).join(', ');
  const aliases = facts.aliases.filter(({ models }) => models.includes(model)).map(({ name }) => code(name));
  const covering = plans.filter(({ items }) => items.some(({ models }) => models.includes(model)));
  const lines = [
    { name: words.context, value: known.context && words.tokens(known.context) },
    { name: words.longest, value: known.output && words.tokens(known.output) },
    { name: words.takes, value: kinds(known.takes) },
    { name: words.makes, value: kinds(known.makes) },
    { name: words.alsoAs, value: aliases.join(' ') },
    { name: words.covered, value: covering.map(({ level }) => words.level(level)).join(', ') },
  ].filter(({ value }) => value);
  const about = facts.notices.filter(({ models }) => models?.includes(model));
  return `<h1>${code(model)}${restMark(model, facts)}</h1>
${known.about === undefined ? '' : `<p class="lead">${ownDirection(known.about)}</p>`}
${shownBase(words.nameOfModel, model)}
${noticeList({ ...facts, notices: about })}
<dl class="facts">${lines.map(({ name, value }) => `<dt>${name}<dd>${value}`).join('\n')}</dl>
<h2>${words.prices}</h2>
<p class="soft">${words.unit}</p>
${priceTable(facts, `<tbody>${modelRows(model, facts)}`)}`;
}

function noticeList(facts: PageFacts): string {
  const { isUnknown, relayClosed, notices, words } = facts;
  const shown = notices.map(({ text, until, models }) => {
    const about = models === null ? '' : `<p>${models.map(code).join(' ')}</p>`;
    const end =
      until === null ? '' : ` <small>${escaped(words.until(dateWords(until * 1000, facts)))}</small>`;
    return `<li>${ownDirection(text)}${end}${about}</li>`;
  });
  const unknown = isUnknown ? [`<li>${words.nothing}</li>`] : [];
  const closed = relayClosed ? [`<li>${words.closed}</li>`] : [];
  const all = [...unknown, ...closed, ...shown];
  return all.length === 0 ? '' : `<ul class="notices" aria-label="${words.notices}">${all.join('\n')}</ul>`;
}

function planSection({ plans, words }: PageFacts): string {
  if (plans.length === 0) return '';
  const item = ({ id, name, value, models }: PlanEntry['items'][number]): string => {
    const calls = value === -1 ? words.unlimited : words.callsAMonth(value);
    return `<li>${ownDirection(name || id)}: ${escaped(`${calls} (${models.join(', ')})`)}</li>`;
  };
  const cards = plans.map(
    ({ level, price, items }) =>
      `<section class="card"><h3>${words.level(level)}</h3><p class="price">${escaped(yuan(price))} <small>${words.aMonth}</small></p>
<ul>${items.map(item).join('')}</ul></section>`,
  );
  return `<section id="plans">\n<h2>${words.plans}</h2>\n<div class="cards">\n${cards.join('\n')}\n</div>\n</section>`;
}

function connectSection({ baseUrl, model, models, accountPage, words }: PageFacts): string {
  const blocks = snippets(baseUrl, model === undefined ? models : [model]).map(
    ({ title, code: text }, at) =>
      `<details name="client"${at === 0 ? ' open' : ''}><summary>${escaped(title)}</summary>\n<pre tabindex="0" aria-label="${escaped(title)}"><code>${escaped(text)}</code></pre></details>`,
  );
  return `<section id="connect">
<h2>${words.connect}</h2>
<p class="soft">${words.needsKey}${accountPage ? words.orTry : ''}</p>
${blocks.join('\n')}
</section>`;
}

const programPaths = ['/v1/models', '/v1/charge', '/v1/plans', '/health'];

const foot = ({ contact, words }: PageFacts): string =>
  `<footer>${contact === '' ? '' : `<p>${words.contact}${ownDirection(contact)}</p>`}
<p>${words.forPrograms}${programPaths.map((path, at) => `<a href="${path}">${words.programs[at]}</a>`).join(', ')}</p></footer>
`;

// The table of models: families, prices, what is announced, what rests.

function modelSection(facts: PageFacts): string {
  const { models, resting, words } = facts;
  if (models.length === 0)
    return `<section id="models">\n<h2>${words.models}</h2>\n<p>${words.none}</p>\n</section>`;
  const families = familiesOf(models, words.others);
  const note = models.some((model) => resting.has(model))
    ? ` <b class="rest">${words.resting}</b>${words.restingNote}`
    : '';
  return `<section id="models">
<h2>${words.models} <small id="count">${models.length}</small></h2>
<p class="soft">${words.unit}${note}</p>
<div id="search" hidden></div>
${familyLinks(families, facts)}
${priceTable(facts, families.map((family, at) => familyRows(family, at, facts)).join('\n'))}
<p id="nothing" hidden>${words.nothing}</p>
${aliasTable(facts)}</section>`;
}

const priceTable = ({ words }: PageFacts, body: string): string => `<table class="models">
<thead><tr><th scope="col">${words.model}<th scope="col">${words.input}<th scope="col">${words.cached}<th scope="col">${words.output}</thead>
${body}
</table>`;

const restMark = (model: string, { resting, words }: PageFacts): string =>
  resting.has(model) ? ` <b class="rest">${words.resting}</b>` : '';

function familyLinks(families: Family[], { words }: PageFacts): string {
  if (families.length < 2) return '';
  const links = families.map(
    ({ name, models }, at) => `<a href="#f${at}">${escaped(name)} <small>${models.length}</small></a>`,
  );
  return `<nav class="families" aria-label="${words.families}">${links.join('\n')}</nav>`;
}

function familyRows({ name, models }: Family, at: number, facts: PageFacts): string {
  const head =
    name === '' ? '' : `<tr class="f"><th id="f${at}" colspan="4" scope="rowgroup">${escaped(name)}\n`;
  return `<tbody>${head}${models.map((model) => modelRows(model, facts)).join('\n')}`;
}

/** Of the list; each name leads to the page of its model. */
function modelRows(model: string, facts: PageFacts): string {
  const path = `?model=${escaped(encodeURIComponent(model))}`;
  const name = facts.model === undefined ? `<a href="${path}">${code(model)}</a>` : code(model);
  return priceLines(model, facts)
    .map((line, at) =>
      at === 0
        ? `<tr><th scope="row">${name}${restMark(model, facts)}${ratesMarkup(line)}`
        : `<tr class="t"><th scope="row">${escaped(line.when)}${ratesMarkup(line)}`,
    )
    .join('');
}

function ratesMarkup({ rates }: PriceLine): string {
  if (typeof rates === 'string') return `<td colspan="3">${escaped(rates)}`;
  const others = rates.others.length > 0 ? `<small>${rates.others.map(escaped).join(', ')}</small>` : '';
  return `<td>${rates.input}<td>${rates.cached}${others}<td>${rates.output}`;
}

function aliasTable(facts: PageFacts): string {
  const { aliases, models, words } = facts;
  if (aliases.length === 0) return '';
  const rows = aliases.map((alias) => {
    const offered = alias.models.filter((model) => models.includes(model)).join(words.otherwise);
    return `<tr><th scope="row">${code(alias.name)}<td>${escaped(offered)}`;
  });
  return `<h3 id="aliases">${words.aliases}</h3>
<p class="soft">${words.aliasesLead}</p>
<table class="aliases"><thead><tr><th scope="col">${words.name}<th scope="col">${words.inOrder}</thead>
<tbody>${rows.join('\n')}
</table>
`;
}

/**
 * The page for a terminal: the one for a browser without its markup. What rows and headers hold is escaped there, so what looks like
 * markup is the page's own. Must never contain control codes from a row or a header.
 */
function plain(html: string): string {
  const text = html
    .slice(html.indexOf('<main'))
    .replaceAll(/<nav[^]*?<\/nav>|<\w+[^>]* hidden>[^<]*/g, '')
    .replaceAll(/<(?:t[hd]|dd)\b/g, '\t$&')
    .replaceAll(/\n?(<(?:li|tr)\b)/g, '\n$1')
    .replaceAll(/<(?:h\d|p|summary|pre)\b/g, '\n$&')
    .replaceAll(/ ?(<small\b)/g, ' $1')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, unescaped)
    .replaceAll(/(?![\n\t])\p{Cc}/gu, '');
  return `${text.replaceAll(/\n{3,}/g, '\n\n').trim()}\n`;
}
