/** Runs the AWS CLI commands of docs/deploy.md against a stand-in, and compares them with the SDK's schemas. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { tableNames, tableSchemas, type TableSchema } from '../../shared/tables/table-schemas.ts';
import { fencesOf } from '../docs/pages.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const pages = ['docs/deploy.md', 'docs/operate.md', 'docs/observability.md'];
const scripts = fencesOf('docs/deploy.md')
  .map(({ code }) => code)
  .filter((code) => code.includes('aws dynamodb'));

/** Runs a block of the page with `aws` replaced by a program that records its arguments, one call a line. */
async function callsOf(script: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'relay-restore-'));
  try {
    const aws = join(folder, 'aws');
    writeFileSync(aws, `#!/bin/sh\necho "$*" >> '${folder}/calls'\n`);
    chmodSync(aws, 0o755);
    const PATH = `${folder}${delimiter}${process.env['PATH']}`;
    await run('sh', ['-eu', '-c', script], { env: { PATH } });
    return readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const schemas: Record<string, TableSchema> = tableSchemas;
/** Deleted rows of other tables can't be recovered. */
const recoverable = tableNames.filter((name) => schemas[name]?.recoverable !== false);
const allTables = recoverable.toSorted();
const argument = (call: string, name: string): string | undefined =>
  new RegExp(`--${name} (\\S+)`).exec(call)?.[1];
const tableOf = (call: string): string =>
  String(argument(call, '(?:target-)?table-name')).replace(/^relay-back-/, '');

describe('a restore by the commands of the page', () => {
  it('restores every table to the same second, and changes none of the old ones', async () => {
    const [restore = ''] = scripts;
    const calls = await callsOf(restore);
    const restores = calls.filter((call) => call.includes('restore-table-to-point-in-time'));
    expect(restores.map(tableOf).toSorted()).toEqual(allTables);
    expect(restores.map((call) => String(argument(call, 'source-table-name'))).toSorted()).toEqual(
      allTables.map((name) => `relay-${name}`),
    );
    expect([...new Set(restores.map((call) => argument(call, 'restore-date-time')))]).toEqual([
      '2026-11-20T12:00:00Z',
    ]);
    expect(
      calls
        .filter((call) => call.startsWith('dynamodb wait'))
        .map(tableOf)
        .toSorted(),
    ).toEqual(allTables);
  });

  it('enables the streams, the expiry, the recovery and the protection of the stack’s tables', async () => {
    const calls = await callsOf(scripts[1] ?? '');
    const setting = (option: string, value: RegExp) =>
      Object.fromEntries(
        calls.filter((call) => argument(call, option)).map((call) => [tableOf(call), value.exec(call)?.[1]]),
      );
    const wanted = (of: (schema: TableSchema) => string | undefined) =>
      Object.fromEntries(
        recoverable
          .map((name) => [name, of(schemas[name] as TableSchema)])
          .filter(([, value]) => value !== undefined),
      );
    expect(setting('stream-specification', /StreamViewType=(\w+)/)).toEqual(wanted(({ stream }) => stream));
    expect(setting('time-to-live-specification', /AttributeName=(\w+)/)).toEqual(wanted(({ ttl }) => ttl));
    const protectedTables = calls
      .filter((call) => call.includes('--deletion-protection-enabled'))
      .map(tableOf)
      .toSorted();
    expect(protectedTables).toEqual(allTables);
    expect(setting('point-in-time-recovery-specification', /Enabled=(\w+)/)).toEqual(wanted(() => 'true'));
  });

  it('ends a drill by deleting only the copies', async () => {
    const calls = await callsOf(scripts[2] ?? '');
    expect(scripts).toHaveLength(3);
    expect(
      calls
        .filter((call) => call.includes('delete-table'))
        .map(tableOf)
        .toSorted(),
    ).toEqual(allTables);
    expect(calls.every((call) => call.includes('--table-name relay-back-'))).toBe(true);
  });
});

/** SDK packages that describe the operations of a service and their parameters. */
const models: Record<string, string> = {
  dynamodb: '@aws-sdk/client-dynamodb',
  ssm: '@aws-sdk/client-ssm',
  secretsmanager: '@aws-sdk/client-secrets-manager',
};

/** The input shapes of a service. */
function typesOf(name: string): string {
  const folder = join(root, 'node_modules', name, 'dist-types', 'models');
  const files = readdirSync(folder).filter((file) => /^models_\d+\.d\.ts$/.test(file));
  return files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
}

/** `--restore-date-time` means the member `RestoreDateTime`; case is ignored, because of members such as `SSEDescription`. */
const memberOf = (option: string): string => option.replaceAll('-', '').toLowerCase();

/** Options that the command line has for all operations, and the negative form of a switch. */
const ofEveryCommand = new Set(['query', 'output', 'endpointurl', 'region', 'recursive']);

describe('each AWS command in the pages', () => {
  const commands = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/aws ([a-z-]+) ([a-z-]+)((?: [^\n`|]*)?)/g)].map(
      ([, service = '', verb = '', rest = '']) => ({ page, service, verb, rest }),
    ),
  );
  const known = commands.filter(({ service, verb }) => service in models && verb !== 'wait');

  it('is found', () => {
    expect(known.length).toBeGreaterThan(12);
  });

  it.each(known)('$service $verb', async ({ service, verb, rest }) => {
    const name = String(models[service]);
    const operation = verb.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const client = (await import(name)) as Record<string, unknown>;
    expect(client).toHaveProperty(`${operation}Command`);
    const types = typesOf(name);
    const shape =
      new RegExp(`export interface ${operation}(?:Input|Request) \\{([^]*?)\\n\\}`).exec(types)?.[1] ?? '';
    const members = new Set(
      [...shape.matchAll(/^ {4}(\w+)\??:/gm)].map(([, member = '']) => member.toLowerCase()),
    );
    const options = [...rest.matchAll(/ --(?:no-)?([a-z-]+)/g)].map(([, option = '']) => memberOf(option));
    const odd = options.filter((option) => !members.has(option) && !ofEveryCommand.has(option));
    expect(odd).toEqual([]);
  });
});
