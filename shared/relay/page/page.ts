/** The page about the relay, in the format that the client requests. */
import { pageHtml } from './page-html.ts';
import type { PageFacts } from './page-facts.ts';
import { pageStyleHash } from './page-script.ts';
import { pageText } from './page-text.ts';

/** HTML for browsers; plain text for clients that do not accept HTML explicitly (curl). */
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
      // Only the page's own style and script may load or run, even if a table row contains markup.
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src '${pageStyleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      vary: 'accept',
    },
  };
}
