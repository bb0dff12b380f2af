/** The page for a browser. It is whole without its script, which adds search and copying. */
import { dateWords } from './page-dates.ts';
import type { PageFacts } from './page-facts.ts';
import { code, escaped, headOf, ownDirection } from './page-markup.ts';
import { modelSection } from './page-models.ts';
import { planLines, yuan } from './page-price.ts';
import { pageScriptPath } from './page-script.ts';
import { snippets } from './page-snippets.ts';
import { pageStyle } from './page-style.ts';

export function pageHtml(facts: PageFacts): string {
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
