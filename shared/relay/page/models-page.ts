/**
 * The models page, in the format that the client requests. `markup` escapes every value that is not markup itself; it is Hono's
 * `html` under a name that the formatter leaves alone, since added blanks would make the page larger.
 */
import { html as markup, raw } from 'hono/html';
import {
  type PageFacts,
  formatDate,
  formatYuanPrice,
  groupFamilies,
  type Family,
  listPriceLines,
  type PriceLine,
} from './page-facts.ts';
import { pageStyleHash, pageScriptPath } from './built-pages.ts';
import {
  renderCode,
  renderHead,
  joinMarkup,
  nothing,
  pageStyle,
  isolateDirection,
  textOf,
  type Markup,
} from './page-kit.ts';
import { listSnippets } from './page-snippets.ts';
import type { PlanEntry } from '../../wire/public-api.ts';

/** HTML for browsers; plain text for clients that do not accept HTML explicitly (curl). */
export function answerPage(
  facts: PageFacts,
  accept: string,
): { body: string; headers: Record<string, string> } {
  const headers = { vary: 'accept, accept-language', 'x-content-type-options': 'nosniff' };
  const body = textOf(renderPage(facts));
  if (!accept.includes('text/html'))
    return {
      body: renderPlainText(body),
      headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' },
    };
  return {
    body,
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      // Only the page's own style and script may load or run, even if a table row contains markup.
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src '${pageStyleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
      'referrer-policy': 'no-referrer',
    },
  };
}

// The page for a browser. Its script adds only search and copy buttons.

function renderPage(facts: PageFacts): Markup {
  const { baseUrl, model, plans, accountPage, words } = facts;
  const host = /^https?:\/\/([^/]+)/.exec(baseUrl)?.[1] ?? 'LLM relay';
  const [language, lang, name] = words.lang === 'en' ? ['zh', 'zh-CN', '中文'] : ['en', 'en', 'English'];
  const query = model === undefined ? nothing : markup`&amp;model=${encodeURIComponent(model)}`;
  const links = [
    markup`<a href="/#models">${words.models}</a>`,
    ...(plans.length > 0 ? [markup`<a href="/#plans">${words.plans}</a>`] : []),
    markup`<a href="#connect">${words.connect}</a>`,
    markup`<a class="language" href="?lang=${language}${query}" lang="${lang}">${name}</a>`,
    ...(accountPage ? [markup`<a class="button" href="/account">${words.account}</a>`] : []),
  ];
  return markup`${renderHead(`${model ?? words.title} · ${host}`, pageStyle, words.lang)}
<script src="${pageScriptPath}" defer></script>
<header class="top"><a class="brand" href="/">${host}</a><nav aria-label="${words.page}">${links}</nav></header>
<main data-search="${words.search}" data-copy="${words.copy}" data-copied="${words.copied}" data-base="${model === undefined ? words.copyBase : words.copyName}" data-example="${words.copyExample}">
${model === undefined ? renderAllModels(facts) : renderModel(model, facts)}
${renderConnect(facts)}
</main>
${renderFooter(facts)}`;
}

const renderAllModels = (facts: PageFacts): Markup => {
  const { baseUrl, models, words } = facts;
  return markup`<h1>${models.length > 1 ? words.headline(models.length) : words.noModels}</h1>
<p class="lead">${words.lead}</p>
${renderBase(words.baseUrl, baseUrl)}
${renderNotices(facts)}
${renderModels(facts)}
${renderPlans(facts)}`;
};

/** With a button that copies it, where there is a script. */
const renderBase = (name: string, text: string): Markup =>
  markup`<p class="base"><span>${name}</span> <code id="base">${text}</code></p>`;

function renderModel(model: string, facts: PageFacts): Markup {
  const { words, plans, modelFacts } = facts;
  const known = Object.hasOwn(modelFacts, model) ? modelFacts[model]! : {};
  const kinds = (names: readonly string[] | undefined) => names?.map((name) => words.kind(name)).join(', ');
  const aliases = facts.aliases
    .filter(({ models }) => models.includes(model))
    .map(({ name }) => renderCode(name));
  const covering = plans.filter(({ items }) => items.some(({ models }) => models.includes(model)));
  const lines = [
    { name: words.context, value: known.context && words.tokens(known.context) },
    { name: words.longest, value: known.output && words.tokens(known.output) },
    { name: words.takes, value: kinds(known.takes) },
    { name: words.makes, value: kinds(known.makes) },
    { name: words.alsoAs, value: aliases.length > 0 && joinMarkup(aliases, ' ') },
    { name: words.covered, value: covering.map(({ level }) => words.level(level)).join(', ') },
  ].filter(({ value }) => value);
  const about = facts.notices.filter(({ models }) => models?.includes(model));
  return markup`<h1>${renderCode(model)}${renderUnavailable(model, facts)}</h1>
${known.about !== undefined && markup`<p class="lead">${isolateDirection(known.about)}</p>`}
${renderBase(words.nameOfModel, model)}
${renderNotices({ ...facts, notices: about })}
<dl class="facts">${joinMarkup(
    lines.map(({ name, value }) => markup`<dt>${name}<dd>${value}`),
    '\n',
  )}</dl>
<h2>${words.prices}</h2>
<p class="soft">${words.unit}</p>
${renderPriceTable(facts, [markup`<tbody>${renderModelRows(model, facts)}`])}`;
}

function renderNotices(facts: PageFacts): Markup {
  const { isUnknown, relayClosed, notices, words } = facts;
  const shown = notices.map(({ text, until, models }) => {
    const about = models !== null && markup`<p>${joinMarkup(models.map(renderCode), ' ')}</p>`;
    const end = until !== null && markup` <small>${words.until(formatDate(until * 1000, facts))}</small>`;
    return markup`<li>${isolateDirection(text)}${end}${about}</li>`;
  });
  const unknown = isUnknown ? [markup`<li>${words.nothing}</li>`] : [];
  const closed = relayClosed ? [markup`<li>${words.closed}</li>`] : [];
  const all = [...unknown, ...closed, ...shown];
  if (all.length === 0) return nothing;
  return markup`<ul class="notices" aria-label="${words.notices}">${joinMarkup(all, '\n')}</ul>`;
}

function renderPlans({ plans, words }: PageFacts): Markup {
  if (plans.length === 0) return nothing;
  const item = ({ id, name, value, models }: PlanEntry['items'][number]): Markup => {
    const calls = value === -1 ? words.unlimited : words.callsAMonth(value);
    return markup`<li>${isolateDirection(name || id)}: ${calls} (${models.join(', ')})</li>`;
  };
  const cards = plans.map(
    ({ level, price, items }) =>
      markup`<section class="card"><h3>${words.level(level)}</h3><p class="price">${formatYuanPrice(price)} <small>${words.aMonth}</small></p>
<ul>${items.map(item)}</ul></section>`,
  );
  return markup`<section id="plans">\n<h2>${words.plans}</h2>\n<div class="cards">\n${joinMarkup(cards, '\n')}\n</div>\n</section>`;
}

function renderConnect({ baseUrl, model, models, accountPage, words }: PageFacts): Markup {
  const blocks = listSnippets(baseUrl, model === undefined ? models : [model]).map(
    ({ title, code: text }, at) =>
      markup`<details name="client"${at === 0 && raw(' open')}><summary>${title}</summary>\n<pre tabindex="0" aria-label="${title}"><code>${text}</code></pre></details>`,
  );
  return markup`<section id="connect">
<h2>${words.connect}</h2>
<p class="soft">${raw(words.needsKey)}${accountPage && raw(words.orTry)}</p>
${joinMarkup(blocks, '\n')}
</section>`;
}

const programPaths = ['/v1/models', '/v1/charge', '/v1/plans', '/health'];

const renderFooter = ({ contact, words }: PageFacts): Markup =>
  markup`<footer>${contact !== '' && markup`<p>${words.contact}${isolateDirection(contact)}</p>`}
<p>${words.forPrograms}${joinMarkup(
    programPaths.map((path, at) => markup`<a href="${path}">${words.programs[at]}</a>`),
    ', ',
  )}</p></footer>
`;

// The table of models: families, prices, what is announced, what rests.

function renderModels(facts: PageFacts): Markup {
  const { models, resting, words } = facts;
  if (models.length === 0)
    return markup`<section id="models">\n<h2>${words.models}</h2>\n<p>${words.none}</p>\n</section>`;
  const families = groupFamilies(models, words.others, facts.modelFacts);
  const note =
    models.some((model) => resting.has(model)) &&
    markup` <b class="rest">${words.resting}</b>${words.restingNote}`;
  return markup`<section id="models">
<h2>${words.models} <small id="count">${models.length}</small></h2>
<p class="soft">${words.unit}${note}</p>
<div id="search" hidden></div>
${renderFamilyLinks(families, facts)}
${renderPriceTable(
  facts,
  families.map((family, at) => renderFamily(family, at, facts)),
)}
<p id="nothing" hidden>${words.nothing}</p>
${renderAliases(facts)}</section>`;
}

const renderPriceTable = (
  { words }: PageFacts,
  bodies: readonly Markup[],
): Markup => markup`<table class="models">
<thead><tr><th scope="col">${words.model}<th scope="col">${words.input}<th scope="col">${words.cached}<th scope="col">${words.output}</thead>
${joinMarkup(bodies, '\n')}
</table>`;

const renderUnavailable = (model: string, { resting, words }: PageFacts): Markup =>
  resting.has(model) ? markup` <b class="rest">${words.resting}</b>` : nothing;

function renderFamilyLinks(families: Family[], { words }: PageFacts): Markup {
  if (families.length < 2) return nothing;
  const links = families.map(
    ({ name, models }, at) => markup`<a href="#f${at}">${name} <small>${models.length}</small></a>`,
  );
  return markup`<nav class="families" aria-label="${words.families}">${joinMarkup(links, '\n')}</nav>`;
}

function renderFamily({ name, models }: Family, at: number, facts: PageFacts): Markup {
  const head = name !== '' && markup`<tr class="f"><th id="f${at}" colspan="4" scope="rowgroup">${name}\n`;
  return markup`<tbody>${head}${joinMarkup(
    models.map((model) => renderModelRows(model, facts)),
    '\n',
  )}`;
}

/** In the list, each name leads to the page of its model. */
function renderModelRows(model: string, facts: PageFacts): Markup[] {
  const path = `?model=${encodeURIComponent(model)}`;
  const name =
    facts.model === undefined ? markup`<a href="${path}">${renderCode(model)}</a>` : renderCode(model);
  return listPriceLines(model, facts).map((line, at) =>
    at === 0
      ? markup`<tr><th scope="row">${name}${renderUnavailable(model, facts)}${renderMainFacts(model, facts)}${renderRates(line)}`
      : markup`<tr class="t"><th scope="row">${line.when}${renderRates(line)}`,
  );
}

/** Shows the main facts; the page of the model shows all. */
function renderMainFacts(asked: string, { model, modelFacts, words }: PageFacts): Markup {
  if (model !== undefined || !Object.hasOwn(modelFacts, asked)) return nothing;
  const { context, takes = [] } = modelFacts[asked] ?? {};
  const parts = [
    context ? words.tokens(context) : [],
    takes.map((kind) => words.kind(kind)).join(', ') || [],
  ];
  const known = parts.flat().join(' · ');
  return known === '' ? nothing : markup`<small>${known}</small>`;
}

function renderRates({ rates }: PriceLine): Markup {
  if (typeof rates === 'string') return markup`<td colspan="3">${rates}`;
  const others = rates.others.length > 0 && markup`<small>${rates.others.join(', ')}</small>`;
  return markup`<td>${rates.input}<td>${rates.cached}${others}<td>${rates.output}`;
}

function renderAliases(facts: PageFacts): Markup {
  const { aliases, models, words } = facts;
  if (aliases.length === 0) return nothing;
  const rows = aliases.map((alias) => {
    const offered = alias.models.filter((model) => models.includes(model)).join(words.otherwise);
    return markup`<tr><th scope="row">${renderCode(alias.name)}<td>${offered}`;
  });
  return markup`<h3 id="aliases">${words.aliases}</h3>
<p class="soft">${words.aliasesLead}</p>
<table class="aliases"><thead><tr><th scope="col">${words.name}<th scope="col">${words.inOrder}</thead>
<tbody>${joinMarkup(rows, '\n')}
</table>
`;
}

const entities: Record<string, string> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
};

/**
 * Strips the markup for a terminal. Texts of rows and headers are escaped, so only the page's own markup is stripped. Must never
 * let through control codes of a row or a header.
 */
function renderPlainText(page: string): string {
  const text = page
    .slice(page.indexOf('<main'))
    .replaceAll(/<nav[^]*?<\/nav>|<\w+[^>]* hidden>[^<]*/g, '')
    .replaceAll(/<(?:t[hd]|dd)\b/g, '\t$&')
    .replaceAll(/\n?(<(?:li|tr)\b)/g, '\n$1')
    .replaceAll(/<(?:h\d|p|summary|pre)\b/g, '\n$&')
    .replaceAll(/ ?(<small\b)/g, ' $1')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? '')
    .replaceAll(/(?![\n\t])\p{Cc}/gu, '');
  return `${text.replaceAll(/\n{3,}/g, '\n\n').trim()}\n`;
}
