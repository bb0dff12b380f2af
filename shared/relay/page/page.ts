import type { ChargeEntry, PlanEntry } from '../../wire/catalog.ts';
import { pageHtml } from './page-html.ts';
import { pageStyleHash } from './page-style.ts';
import { pageText } from './page-text.ts';

/** What the page shows; nothing that the public read endpoints do not say too. */
export interface PageFacts {
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** By id: the first that names a model prices it. */
  charges: ChargeEntry[];
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
}

/** The page for browsers, or as plain text for whoever does not ask for HTML (curl). */
export function page(facts: PageFacts, accept: string): { body: string; headers: Record<string, string> } {
  if (!accept.includes('text/html'))
    return {
      body: pageText(facts),
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        vary: 'accept',
        'x-content-type-options': 'nosniff',
      },
    };
  return {
    body: pageHtml(facts),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      // Nothing but the page's own style sheet may load or run, whatever a table row holds.
      'content-security-policy': `default-src 'none'; style-src '${pageStyleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      vary: 'accept',
    },
  };
}
