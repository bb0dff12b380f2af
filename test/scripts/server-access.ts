/** Writes the list of DynamoDB actions in docs/server.md from the descriptions of the functions. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serverDescription } from '../../infra/stack/constructs/function-descriptions.ts';

const page = join(import.meta.dirname, '..', '..', 'docs', 'server.md');

/** Tables with the same actions share a line. */
export function serverAccess(): string {
  const named = Object.entries(serverDescription.tables).filter(([, actions]) => actions.length > 0);
  const lines = Map.groupBy(named, ([, actions]) => actions.map((action) => `\`${action}\``).join(', '));
  return [...lines]
    .map(([actions, tables]) => `- ${tables.map(([name]) => `\`${name}\``).join(', ')}: ${actions}`)
    .join('\n');
}

/** The list after its comment, up to the next empty line. */
export const listInPage = /(?<=^<!-- made by test\/scripts\/server-access\.ts -->\n\n)[^]*?(?=\n\n)/m;

if (import.meta.main) writeFileSync(page, readFileSync(page, 'utf8').replace(listInPage, serverAccess()));
