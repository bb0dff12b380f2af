/** The page for a browser: one file without scripts. Text from a row or a header must be escaped. */
import type { PageFacts } from './page-facts.ts';
import { modelLines, planLines, yuan } from './page-price.ts';
import { snippets } from './page-snippets.ts';
import { pageStyle } from './page-style.ts';

export function pageHtml(facts: PageFacts): string {
  const { baseUrl, contact, relayClosed } = facts;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>LLM relay</title>
<style>${pageStyle}</style>
</head>
<body>
<main>
<h1>LLM relay</h1>
<p>One OpenAI-compatible address in front of several models. Keep your client; change its base URL and its key.</p>
${relayClosed ? '<p class="notice">The relay is closed at the moment: chat calls are refused.</p>' : ''}
<p class="base"><span>Base URL</span><code>${escaped(baseUrl)}</code></p>
${modelSection(facts)}
${planSection(facts)}
${connectSection(facts)}
<footer>${contact === '' ? '' : `<p>Contact: ${escaped(contact)}</p>`}
<p>For programs: <a href="/v1/models">models</a>, <a href="/v1/charge">prices</a>, <a href="/v1/plans">plans</a>, <a href="/health">health</a></p></footer>
</main>
</body>
</html>
`;
}

function modelSection(facts: PageFacts): string {
  const { models } = facts;
  if (models.length === 0) return '<h2>Models</h2>\n<p>None yet.</p>';
  const rows = modelLines(facts).map(
    ([name, words]) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${escaped(words)}</td></tr>`,
  );
  return `<h2>Models</h2>
<table>
<thead><tr><th scope="col">Model</th><th scope="col">Price</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>`;
}

function planSection({ plans }: PageFacts): string {
  if (plans.length === 0) return '';
  const cards = plans.map(
    (plan) => `<section class="plan"><h3>Level ${plan.level}</h3><p>${escaped(yuan(plan.price))} a month</p>
<ul>${planLines(plan)
      .map((line) => `<li>${escaped(line)}</li>`)
      .join('')}</ul></section>`,
  );
  return `<h2>Plans</h2>\n<div class="plans">\n${cards.join('\n')}\n</div>`;
}

function connectSection({ baseUrl, models }: PageFacts): string {
  const blocks = snippets(baseUrl, models).map(
    ({ title, code }) => `<h3>${escaped(title)}</h3>\n<pre><code>${escaped(code)}</code></pre>`,
  );
  return `<h2>Connect</h2>
<p>You need a key; it starts with <code>sk-</code>. The examples read it from <code>RELAY_KEY</code>.</p>
${blocks.join('\n')}`;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
