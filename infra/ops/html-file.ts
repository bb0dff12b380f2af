/**
 * A page as one file, ready to be sent: no script, nothing loaded; also in a mail or a chat that shows files, nothing but its
 * own style is let in. Light and dark as the reader's system is, always light on paper.
 */
import { raw } from 'hono/html';
import { colours, sharedStyle } from '../../shared/relay/page/page-kit.ts';
import { consoleStyle } from './console/layout/console-style.ts';
import { html, type Content } from './markup.ts';

export const fileOf = async (title: string, body: Content): Promise<string> =>
  String(
    await html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta
            http-equiv="Content-Security-Policy"
            content="default-src 'none'; style-src 'unsafe-inline'"
          />
          <title>${title}</title>
          <style>
            ${raw(style)}
          </style>
        </head>
        <body>
          <main>${body}</main>
        </body>
      </html> `,
  );

const style = `${sharedStyle}${consoleStyle}
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.5rem 3rem; font-size: 15px; }
h1 { font-size: 1.6rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
tr { break-inside: avoid; }
.statement + .statement { break-before: page; margin-top: 4rem; }
@media screen and (max-width: 40rem) {
  body { padding: 1.2rem 1rem 2rem; }
}
@media print {
  @page { margin: 14mm; }
  :root { color-scheme: light; ${colours.light} }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
  svg rect, .legend li::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;
