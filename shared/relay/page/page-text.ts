/** The page for a terminal. Must never contain control codes from a row or a header. */
import { dateWords } from './page-dates.ts';
import type { PageFacts } from './page-facts.ts';
import { familiesOf } from './page-families.ts';
import { aliasWords, planLines, priceLines, priceWords, yuan } from './page-price.ts';
import { snippets } from './page-snippets.ts';

export function pageText(facts: PageFacts): string {
  const { baseUrl, models, plans, contact } = facts;
  const lines = [
    'An OpenAI-compatible relay.',
    ...noticeLines(facts),
    '',
    `Base URL: ${baseUrl}`,
    'Set it in any OpenAI client, with a key that starts with sk-.',
    '',
    'Models (prices per million tokens)',
    ...(models.length === 0 ? ['  none yet'] : modelLines(facts)),
  ];
  for (const plan of plans) {
    lines.push(
      '',
      `Plan ${plan.level}: ${yuan(plan.price)} a month`,
      ...planLines(plan).map(({ name, words }) => `  ${name}: ${words}`),
    );
  }
  for (const { title, code } of snippets(baseUrl, models)) {
    lines.push('', title, ...code.split('\n').map((line) => (line === '' ? '' : `  ${line}`)));
  }
  if (contact !== '') lines.push('', `Contact: ${contact}`);
  return `${lines.map(printable).join('\n')}\n`;
}

function noticeLines({ relayClosed, notices, timeZone }: PageFacts): string[] {
  const closed = relayClosed ? ['The relay is closed at the moment: calls are refused.'] : [];
  const shown = notices.map(({ text, until, models }) => {
    const about = models === null ? '' : ` (${models.join(', ')})`;
    const end = until === null ? '' : ` Until ${dateWords(until * 1000, timeZone)}.`;
    return `* ${text}${about}${end}`;
  });
  return [...closed, ...shown].flatMap((line) => ['', line]);
}

function modelLines(facts: PageFacts): string[] {
  const { models, aliases, resting } = facts;
  const width = Math.max(0, ...[...models, ...aliases.map(({ name }) => name)].map((name) => name.length));
  const entry = (name: string, words: string): string => `  ${name.padEnd(width)}  ${words}`;
  return [
    ...familiesOf(models)
      .flatMap((family) => family.models)
      .flatMap((model) =>
        priceLines(model, facts).map((line, at) =>
          entry(
            at === 0 ? model : '',
            priceWords(line) + (at === 0 && resting.has(model) ? ' (resting)' : ''),
          ),
        ),
      ),
    ...aliases.map((alias) =>
      entry(alias.name, `at the price of the model that answers: ${aliasWords(alias, models)}`),
    ),
  ];
}

const printable = (line: string): string => line.replaceAll(/\p{Cc}/gu, '');
