/** Builds of the functions `chat` and `ledger` from a copy of the sources with a seeded bug. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buildFunctions } from '../../infra/build/build-functions.ts';

const root = path.join(import.meta.dirname, '..', '..');

interface Change {
  /** Default: `chat`. */
  of?: 'chat' | 'ledger';
  file: string;
  find: string;
  replace: string;
}

/** The bug of each build. */
export const seeds = {
  'crash at boot': {
    file: 'functions/chat.ts',
    find: 'export const handler',
    replace: "throw new Error('seeded: does not start');\nexport const handler",
  },
  'error chunk after the 200': {
    file: 'shared/endpoints/chat/chat-endpoint.ts',
    find: '      const finish = held;\n      held = undefined;\n      if (chunk.usage) {',
    // One of three answers fails, so only a ratio shows it.
    replace: `      if (chunk.usage && requestId.charCodeAt(25) % 3 === 0) throw new TypeError('seeded');
      const finish = held;\n      held = undefined;\n      if (chunk.usage) {`,
  },
  'settle refused': {
    file: 'shared/adapters/dynamodb/quotas/quota-store.ts',
    find: 'update(write, buildClose(write))',
    replace: "update(write, { ...buildClose(write), UpdateExpression: 'SET' })",
  },
  /** Healthy, except for one call that is too large for the memory. */
  'out of memory once': {
    file: 'shared/adapters/entry/lambda-handlers.ts',
    find: '  return () => (isBase64Encoded',
    replace: `  const kept: unknown[] = [];
  while (body?.includes('exhaust the memory')) kept.push(Array.from({ length: 100_000 }, () => ({})));
  return () => (isBase64Encoded`,
  },
  'ledger that throws': {
    of: 'ledger',
    file: 'shared/relay/jobs/ledger-projector.ts',
    find: '  const groups = ledger.groups(rows);',
    replace: "  if (rows.length > 0) throw new TypeError('seeded');\n  const groups = ledger.groups(rows);",
  },
  'ledger with wrong rows': {
    of: 'ledger',
    file: 'shared/billing/ledger-row.ts',
    find: '    ...closeRecord,\n    account,',
    replace: '    ...closeRecord,\n    charge: closeRecord.charge + 1n,\n    account,',
  },
} as const satisfies Record<string, Change>;

export type Seed = keyof typeof seeds;

export interface SeededBuilds {
  /** Folder of the bundle. */
  build(seed: Seed): Promise<string>;
  remove(): void;
}

/** Uses one copy, which it changes and builds for each seed in turn. */
export function seededBuilds(): SeededBuilds {
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-seeded-'));
  for (const name of ['shared', 'functions', 'package.json', 'tsconfig.json'])
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  for (const name of readdirSync(path.join(folder, 'functions')))
    if (name.endsWith('.ts') && !['chat.ts', 'ledger.ts'].includes(name))
      rmSync(path.join(folder, 'functions', name));
  return {
    async build(seed) {
      const { of = 'chat', file, find, replace }: Change = seeds[seed];
      const name = path.join(folder, file);
      const before = readFileSync(name, 'utf8');
      if (before.split(find).length !== 2) throw new Error(`${file} does not hold this once: ${find}`);
      writeFileSync(
        name,
        before.replace(find, () => replace),
      );
      const outputFolder = path.join(folder, 'dist', seed.replaceAll(' ', '-'));
      try {
        await buildFunctions({ functionsFolder: path.join(folder, 'functions'), outputFolder });
      } finally {
        writeFileSync(name, before);
      }
      return path.join(outputFolder, of);
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
