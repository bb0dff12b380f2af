/** The page for a terminal. Must never contain control codes from a row or a header. */
import type { PageFacts } from './page-facts.ts';
import { modelLines, planLines, yuan } from './page-price.ts';
import { snippets } from './page-snippets.ts';

export function pageText(facts: PageFacts): string {
  const { baseUrl, models, plans, contact, relayClosed } = facts;
  const listed = modelLines(facts);
  const width = Math.max(0, ...listed.map(([name]) => name.length));
  const lines = [
    'An OpenAI-compatible relay.',
    ...(relayClosed ? ['', 'The relay is closed at the moment: chat calls are refused.'] : []),
    '',
    `Base URL: ${baseUrl}`,
    'Set it in any OpenAI client, with a key that starts with sk-.',
    '',
    'Models',
    ...(models.length === 0 ? ['  none yet'] : []),
    ...listed.map(([name, words]) => `  ${name.padEnd(width)}  ${words}`),
  ];
  for (const plan of plans) {
    lines.push(
      '',
      `Plan ${plan.level}: ${yuan(plan.price)} a month`,
      ...planLines(plan).map((line) => `  ${line}`),
    );
  }
  for (const { title, code } of snippets(baseUrl, models)) {
    lines.push('', title, ...code.split('\n').map((line) => (line === '' ? '' : `  ${line}`)));
  }
  if (contact !== '') lines.push('', `Contact: ${contact}`);
  return `${lines.map(printable).join('\n')}\n`;
}

const printable = (line: string): string => line.replaceAll(/\p{Cc}/gu, '');
