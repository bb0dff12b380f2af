/** The table of models: families, prices, what is announced, what rests. */
import type { PageFacts } from './page-facts.ts';
import { familiesOf, type Family } from './page-families.ts';
import { code, escaped } from './page-markup.ts';
import { aliasWords, priceLines, type PriceLine } from './page-price.ts';

export function modelSection(facts: PageFacts): string {
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
  const writes = rates.writes.length > 0 ? `<small>${rates.writes.map(escaped).join(', ')}</small>` : '';
  return `<td>${rates.input}<td>${rates.cached}${writes}<td>${rates.output}`;
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
