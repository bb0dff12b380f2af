import { readFileSync } from 'node:fs';

export const billingPage = readFileSync(new URL('../../docs/billing.md', import.meta.url), 'utf8');

const examples = [...billingPage.matchAll(/```json\n(.*?)```/gs)].map(
  (match) => JSON.parse(String(match[1])) as Record<string, unknown>,
);

/** Returns the example on the page with this `object`. */
export const exampleOf = (object: string): Record<string, unknown> | undefined =>
  examples.find((example) => example['object'] === object);
