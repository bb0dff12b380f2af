/** The page about the relay, in the format that the client requests. */
import {
  type PageFacts,
  dateWords,
  planLines,
  yuan,
  familiesOf,
  type Family,
  aliasWords,
  priceLines,
  type PriceLine,
} from './page-facts.ts';
import { pageStyleHash, pageScriptPath } from './built-pages.ts';
import { code, escaped, headOf, ownDirection, pageStyle, unescaped } from './page-kit.ts';
import { snippets } from './page-snippets.ts';

/** HTML for browsers; plain text for clients that do not accept HTML explicitly (curl). */
export function page(facts: PageFacts, accept: string): { body: string; headers: Record<string, string> } {
  const headers = { vary: 'accept', 'x-content-type-options': 'nosniff' };
  if (!accept.includes('text/html'))
    return {
      body: plain(pageHtml(facts)),
      headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' },
    };
  return {
    body: pageHtml(facts),
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
  const { baseUrl, models, plans, accountPage } = facts;
  const host = /^https?:\/\/([^/]+)/.exec(baseUrl)?.[1] ?? 'LLM relay';
  const links = [
    '<a href="#models">Models</a>',
    ...(plans.length > 0 ? ['<a href="#plans">Plans</a>'] : []),
    '<a href="#connect">Connect</a>',
    ...(accountPage ? ['<a class="button" href="/account">Account</a>'] : []),
  ];
  return `${headOf(`Models and prices · ${host}`, pageStyle)}
<script src="${pageScriptPath}" defer></script>
<header class="top"><a class="brand" href="/">${escaped(host)}</a><nav aria-label="Page">${links.join('')}</nav></header>
<main>
<h1>${headline(models.length)}</h1>
<p class="lead">One OpenAI-compatible address. Keep your client; change its base URL and its key.</p>
<p class="base"><span>Base URL</span> <code id="base">${escaped(baseUrl)}</code></p>
${noticeList(facts)}
${modelSection(facts)}
${planSection(facts)}
${connectSection(facts)}
</main>
${foot(facts)}`;
}

const headline = (count: number): string =>
  count > 1 ? `${count.toLocaleString('en-US')} models, one API` : 'LLM relay';

function noticeList({ relayClosed, notices, timeZone }: PageFacts): string {
  const shown = notices.map(({ text, until, models }) => {
    const about = models === null ? '' : `<p>${models.map(code).join(' ')}</p>`;
    const end = until === null ? '' : ` <small>until ${escaped(dateWords(until * 1000, timeZone))}</small>`;
    return `<li>${ownDirection(text)}${end}${about}</li>`;
  });
  const closed = relayClosed ? ['<li>The relay is closed at the moment: calls are refused.</li>'] : [];
  const all = [...closed, ...shown];
  return all.length === 0 ? '' : `<ul class="notices" aria-label="Notices">${all.join('\n')}</ul>`;
}

function planSection({ plans }: PageFacts): string {
  if (plans.length === 0) return '';
  const cards = plans.map(
    (
      plan,
    ) => `<section class="card"><h3>Level ${plan.level}</h3><p class="price">${escaped(yuan(plan.price))} <small>a month</small></p>
<ul>${planLines(plan)
      .map(({ name, words }) => `<li>${ownDirection(name)}: ${escaped(words)}</li>`)
      .join('')}</ul></section>`,
  );
  return `<section id="plans">\n<h2>Plans</h2>\n<div class="cards">\n${cards.join('\n')}\n</div>\n</section>`;
}

function connectSection({ baseUrl, models, accountPage }: PageFacts): string {
  const blocks = snippets(baseUrl, models).map(
    ({ title, code: text }, at) =>
      `<details name="client"${at === 0 ? ' open' : ''}><summary>${escaped(title)}</summary>\n<pre tabindex="0" aria-label="${escaped(title)}"><code>${escaped(text)}</code></pre></details>`,
  );
  const playground = accountPage ? ' Or try a model first, in <a href="/account">your account</a>.' : '';
  return `<section id="connect">
<h2>Connect</h2>
<p class="soft">You need a key; it starts with <code>sk-</code>. The examples read it from the variable <code>RELAY_KEY</code>.${playground}</p>
${blocks.join('\n')}
</section>`;
}

const foot = ({ contact }: PageFacts): string =>
  `<footer>${contact === '' ? '' : `<p>Contact: ${ownDirection(contact)}</p>`}
<p>For programs: <a href="/v1/models">models</a>, <a href="/v1/charge">prices</a>, <a href="/v1/plans">plans</a>, <a href="/health">health</a></p></footer>
`;

// The table of models: families, prices, what is announced, what rests.

function modelSection(facts: PageFacts): string {
  const { models, resting } = facts;
  if (models.length === 0) return '<section id="models">\n<h2>Models</h2>\n<p>None yet.</p>\n</section>';
  const families = familiesOf(models);
  const note = models.some((model) => resting.has(model))
    ? ' <b class="rest">resting</b> models are not answering at the moment; they are tried again within minutes.'
    : '';
  return `<section id="models">
<h2>Models <small id="count">${models.length}</small></h2>
<p class="soft">Prices in yuan per million tokens, unless they say otherwise.${note}</p>
<div id="search" hidden></div>
${familyLinks(families)}
<table class="models">
<thead><tr><th scope="col">Model<th scope="col">Input<th scope="col">Cached input<th scope="col">Output</thead>
${families.map((family, at) => familyRows(family, at, facts)).join('\n')}
</table>
<p id="nothing" hidden>No model has that name.</p>
${aliasTable(facts)}</section>`;
}

function familyLinks(families: Family[]): string {
  if (families.length < 2) return '';
  const links = families.map(
    ({ name, models }, at) => `<a href="#f${at}">${escaped(name)} <small>${models.length}</small></a>`,
  );
  return `<nav class="families" aria-label="Families of models">${links.join('\n')}</nav>`;
}

function familyRows({ name, models }: Family, at: number, facts: PageFacts): string {
  const head =
    name === '' ? '' : `<tr class="f"><th id="f${at}" colspan="4" scope="rowgroup">${escaped(name)}\n`;
  return `<tbody>${head}${models.map((model) => modelRows(model, facts)).join('\n')}`;
}

function modelRows(model: string, facts: PageFacts): string {
  const mark = facts.resting.has(model) ? ' <b class="rest">resting</b>' : '';
  return priceLines(model, facts)
    .map((line, at) =>
      at === 0
        ? `<tr><th scope="row">${code(model)}${mark}${ratesMarkup(line)}`
        : `<tr class="t"><th scope="row">${escaped(line.when)}${ratesMarkup(line)}`,
    )
    .join('');
}

function ratesMarkup({ rates }: PriceLine): string {
  if (typeof rates === 'string') return `<td colspan="3">${escaped(rates)}`;
  const others = rates.others.length > 0 ? `<small>${rates.others.map(escaped).join(', ')}</small>` : '';
  return `<td>${rates.input}<td>${rates.cached}${others}<td>${rates.output}`;
}

function aliasTable({ aliases, models }: PageFacts): string {
  if (aliases.length === 0) return '';
  const rows = aliases.map(
    (alias) => `<tr><th scope="row">${code(alias.name)}<td>${escaped(aliasWords(alias, models))}`,
  );
  return `<h3 id="aliases">Names for several models</h3>
<p class="soft">The first model that can answer does, at its own price.</p>
<table class="aliases"><thead><tr><th scope="col">Name<th scope="col">Models, in the order in which they are tried</thead>
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
    .slice(html.indexOf('<main>'))
    .replaceAll(/<nav[^]*?<\/nav>|<\w+[^>]* hidden>[^<]*/g, '')
    .replaceAll(/<t[hd]\b/g, '\t$&')
    .replaceAll(/\n?(<(?:li|tr)\b)/g, '\n$1')
    .replaceAll(/<(?:h\d|p|summary|pre)\b/g, '\n$&')
    .replaceAll(/ ?(<small\b)/g, ' $1')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:amp|lt|gt|quot|#39);/g, unescaped)
    .replaceAll(/(?![\n\t])\p{Cc}/gu, '');
  return `${text.replaceAll(/\n{3,}/g, '\n\n').trim()}\n`;
}
