/**
 * Makes what the catalog function serves of the customers' pages: one script for the page of models, and the account's page
 * as a whole, each with its hash. It is committed, so that functions and tests need no build of their own.
 */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { build } from 'esbuild';
import { pageStyle } from '../../shared/relay/page/page-style.ts';
import { accountHtml, modelsLink } from './account-markup.ts';
import { accountStyle } from './account-style.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = 'shared/relay/page';

/** The files, by their path from the root, with the text that each must have. */
export async function builtPages(): Promise<Record<string, string>> {
  const [script, accountScript] = await Promise.all([bundled('page'), bundled('account')]);
  const style = pageStyle + accountStyle;
  const html = accountHtml({ style, script: accountScript });
  const name = createHash('sha256').update(script).digest('hex').slice(0, 16);
  return {
    [`${folder}/page-script.ts`]: written('The script of the page of models', {
      pageScriptPath: `/assets/page-${name}.js`,
      pageScript: script,
      pageStyleHash: hashOf(pageStyle),
    }),
    [`${folder}/account-page.ts`]: written("The account's page", {
      accountPageHtml: html,
      accountScriptHash: hashOf(accountScript),
      accountStyleHash: hashOf(style),
      modelsLink,
    }),
  };
}

async function bundled(name: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`infra/pages/browser/${name}.ts`],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  const text = outputFiles[0]?.text.trim() ?? '';
  if (/<\/script|<!--/i.test(text)) throw new Error(`the script ${name} would end its own element`);
  return text;
}

const hashOf = (text: string): string => `sha256-${createHash('sha256').update(text).digest('base64')}`;

const written = (what: string, values: Record<string, string>): string =>
  [
    `/** ${what}. Written by infra/pages/write-pages.ts: change what it is made of, there. */`,
    ...Object.entries(values).map(([name, value]) => `export const ${name} =\n  ${quoted(value)};`),
    '',
  ].join('\n');

/** As the formatter writes texts. */
function quoted(text: string): string {
  const escaped = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"');
  return `'${escaped.replaceAll("'", String.raw`\'`)}'`;
}
