/** The page about the relay, in the form that the client asks for. */
import { pageHtml } from './page-html.ts';
import type { PageFacts } from './page-facts.ts';
import { pageStyleHash } from './page-style.ts';
import { pageText } from './page-text.ts';

/** As HTML for browsers, as plain text for clients that do not ask for HTML (curl). */
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
