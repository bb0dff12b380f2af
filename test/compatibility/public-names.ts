/**
 * Collects every public name of docs/compatibility.md from what the product runs: schemas, the command line, the log, the template.
 * `npm run release` keeps them as the snapshot of the release:
 *
 *     node test/compatibility/public-names.ts
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import type { Command } from 'commander';
import { composeCommandName } from '../../infra/ops/cli/command.ts';
import { createProgram } from '../../infra/ops/cli/program.ts';
import { findOption, optionNames } from '../../infra/stack/options/option-table.ts';
import {
  createBackgroundMetrics,
  createConfigMetrics,
  createRequestMetrics,
  createServerMetrics,
  eventMetrics,
} from '../../shared/adapters/telemetry/log.ts';
import { closeFields } from '../../shared/billing/quota-item.ts';
import { AlertedRow } from '../../shared/config/rows/alerted-account.ts';
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { CodeRow } from '../../shared/config/rows/code-row.ts';
import { GrantRow } from '../../shared/config/rows/grant-row.ts';
import { KeyRow } from '../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { settingTable } from '../../shared/config/setting-rows.ts';
import { metricNames, type RequestLog } from '../../shared/relay/ports/telemetry.ts';
import { partCounts } from '../../shared/wire/chat-response.ts';
import { linesOf } from '../support/embedded-metrics.ts';
import { exportsOf, membersOf, type Names } from './declared-names.ts';
import { apiNames } from './api-names.ts';
import { schemaNames } from './schema-names.ts';

/** Each name with its alternatives, such as `string | undefined`. */
export type PublicNames = Record<string, Names>;

const root = path.join(import.meta.dirname, '..', '..');
const readJson = (file: string): unknown => JSON.parse(readFileSync(path.join(root, file), 'utf8'));

/** Generated from the schemas of requests. */
const openApi = 'docs/openapi.json';

/** A new required name in one of these breaks users. The relay writes the others. */
export const writtenByUsers: ReadonlySet<string> = new Set([
  'attributes',
  'settings',
  'commands',
  'options',
  'props',
  'requests',
]);

export async function collectPublicNames(): Promise<PublicNames> {
  const { log, metrics } = await telemetryNames();
  return {
    ...(existsSync(path.join(root, openApi)) && apiNames(readJson(openApi))),
    tables: tableNames(),
    attributes: under((schema, name) => schemaNames(schema, name), {
      accounts: AlertedRow,
      channels: ChannelRow,
      charges: ChargeRow,
      codes: CodeRow,
      grants: GrantRow,
      keys: KeyRow,
      plans: PlanRow,
    }),
    ledger: ledgerNames(),
    settings: under(({ value }, name) => schemaNames(value, name), settingTable),
    commands: commandNames(),
    // What test/access/forms.test.ts sees each command print.
    outputs: readJson('test/access/outputs.golden.json') as Names,
    options: under(
      (option, name) => schemaNames(option?.schema, name, ['undefined']),
      Object.fromEntries(optionNames.map((name) => [name, findOption(name)])),
    ),
    ...constructNames(),
    template: templateNames(),
    log,
    metrics,
  };
}

/** The names of all values, each read with the value's own name. */
const under = <Value>(
  read: (value: Value, name: string) => Names,
  values: Readonly<Record<string, Value>>,
): Names => Object.assign({}, ...Object.entries(values).map(([name, value]) => read(value, name))) as Names;

const prefixed = (prefix: string, names: Names): Names =>
  Object.fromEntries(Object.entries(names).map(([name, text]) => [`${prefix}.${name}`, text]));

/** The golden file that test/infra/tables.test.ts compares with the template. */
function tableNames(): Names {
  interface Table {
    name: string;
    keys: string[];
    indexes: { name: string; keys: string[] }[];
    ttl: string | null;
    stream: string | null;
  }
  const tables = readJson('test/infra/tables.golden.json') as Table[];
  const entries = tables.flatMap(({ name, keys, indexes, ttl, stream }) =>
    indexes
      .map((index) => [`${name} index ${index.name}`, index.keys.join(', ')])
      .concat([
        [name, keys.join(', ')],
        [`${name} ttl`, ttl ?? ''],
        [`${name} stream`, stream ?? ''],
      ]),
  );
  return Object.fromEntries(entries.filter(([, text]) => text !== '')) as Names;
}

function ledgerNames(): Names {
  const rows = exportsOf(path.join(root, 'shared/billing/ledger-row.ts'));
  const [call, grant] = ['CloseRow', 'GrantLedgerRow'].map((name) => rows.get(name));
  return {
    ...(call && prefixed('call', membersOf(call))),
    ...prefixed('call', closeFields),
    ...(grant && prefixed('grant', membersOf(grant))),
  };
}

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);

function commandNames(): Names {
  const streams = { input: Readable.from([]), output: new PassThrough(), errors: new PassThrough() };
  const program = createProgram({ ...streams, environment: {} });
  const optional = (is: boolean): string => (is ? ' | undefined' : '');
  return under(
    (command, name) => {
      const parameters = command.registeredArguments.map(({ required, variadic }, at) => [
        `${name} argument ${at + 1}`,
        `${variadic ? 'list' : 'text'}${optional(!required)}`,
      ]);
      const options = command.options.map(({ long, flags, mandatory, variadic, required }) => [
        `${name} ${long ?? flags}`,
        `${variadic ? 'list' : required ? 'text' : 'switch'}${optional(!mandatory)}`,
      ]);
      return { [name]: 'command', ...(Object.fromEntries(parameters.concat(options)) as Names) };
    },
    Object.fromEntries(leavesOf(program).map((command) => [composeCommandName(command), command])),
  );
}

/** What apps write into `new Relay(...)` and `new RelayEdge(...)`, and what they read from them. */
function constructNames(): { props: Names; members: Names } {
  const exported = ['infra/stack/relay.ts', 'infra/stack/edge/relay-edge.ts'].flatMap((file) =>
    Array.from(exportsOf(path.join(root, file))),
  );
  const names = (isClass: boolean): Names => {
    const chosen = exported.filter(([, { node }]) => (node.type === 'ClassDeclaration') === isClass);
    return under(
      (found, name) => ({ [name]: 'export', ...prefixed(name, membersOf(found)) }),
      Object.fromEntries(chosen),
    );
  };
  return { props: names(false), members: names(true) };
}

/** Ids of these types change with every deployment: a hash of their content is part of them. */
const regenerated = /^AWS::(Lambda::Version|ApiGateway::Deployment)$/;

/** Reads the golden files of test/infra/template.test.ts: the template with the most resources, and the resources that options add. */
function templateNames(): Names {
  const { Resources, Outputs } = readJson('test/infra/template.golden.json') as {
    Resources: Record<string, { Type: string }>;
    Outputs: object;
  };
  const folder = path.join(root, 'test/infra/options.golden');
  const added = readdirSync(folder).flatMap((file) =>
    Array.from(
      readFileSync(path.join(folder, file), 'utf8').matchAll(
        /^Resources\.(\w+): nothing -> \{"Type":"([^"]+)"/gm,
      ),
      ([, id = '', type = '']) => [id, type] as const,
    ),
  );
  const resources = [...Object.entries(Resources).map(([id, { Type }]) => [id, Type] as const), ...added];
  return Object.fromEntries([
    ...resources.filter(([, type]) => !regenerated.test(type)),
    ...Object.keys(Outputs).map((name) => [`output ${name}`, 'output']),
  ]) as Names;
}

interface WrittenLine {
  [field: string]: unknown;
  _aws?: { CloudWatchMetrics: { Dimensions: string[][]; Metrics: { Name: string }[] }[] };
}

/** Writes a line of every kind, each with all fields, and reads the names in them. */
async function telemetryNames(): Promise<{ log: Names; metrics: Names }> {
  const declared = exportsOf(path.join(root, 'shared/relay/ports/telemetry.ts')).get('RequestLog');
  const types = { ...(declared && membersOf(declared)), ...countTypes };
  const samples = Object.fromEntries(
    Object.entries(types).flatMap(([name, type]) => (name.includes('.') ? [] : [[name, sampleOf(type)]])),
  );
  const attempts = [{ channel: 'a', outcome: 'upstream_timeout' }];
  const entry = { ...samples, attempts } as unknown as RequestLog;
  const requests = createRequestMetrics('relay', 'chat:1');
  const requestLines = [
    { status: 500, end: 'failed', code: 'internal' },
    { status: 400, end: 'refused' },
  ].map((end) => requests.describeRequest({ ...entry, ...end }, 0) as WrittenLine);
  const background = createBackgroundMetrics('relay');
  const config = createConfigMetrics('relay');
  const others = await linesOf(() => {
    for (const name of metricNames) background.count(name);
    background.countSweep({ open: 1, expired: 1 });
    background.countCanaryCall({ ok: true });
    createServerMetrics('relay').inFlight(1);
    config.compiled({ badRows: 1, warnedRows: 1, unpricedModels: 1 });
    config.failed();
  });
  const lines = [
    ...requestLines,
    ...[...eventMetrics.keys()].map((name) => requests.describeEvent(name, 0) as WrittenLine),
    ...others.map((line) => JSON.parse(line) as WrittenLine),
  ];
  const metrics = lines.flatMap(({ _aws }) =>
    (_aws?.CloudWatchMetrics ?? []).flatMap(({ Dimensions, Metrics }) =>
      Metrics.map(({ Name }) => [Name, Dimensions.map((names) => names.join(',')).join(' | ')] as const),
    ),
  );
  const fields = requestLines.flatMap((line) =>
    Object.entries(line).filter(([name, value]) => name !== '_aws' && value !== undefined),
  );
  return {
    log: Object.fromEntries(fields.map(([name, value]) => [name, types[name] ?? typeof value])),
    metrics: Object.fromEntries(metrics),
  };
}

const countTypes: Names = Object.fromEntries(partCounts.map((name) => [name, 'number | undefined']));

function sampleOf(type: string): unknown {
  if (type.startsWith('number')) return 7;
  if (type.startsWith('boolean')) return true;
  return type.startsWith('string') || type.startsWith("'") ? '7' : [];
}

export const snapshotFolder = import.meta.dirname;

/** The names of the last release, from its snapshot. */
export function readReleasedNames(): { version: string; names: PublicNames } {
  const file = readdirSync(snapshotFolder).find((name) => name.endsWith('.json'));
  if (file === undefined) throw new Error('no snapshot of a release');
  const names = JSON.parse(readFileSync(path.join(snapshotFolder, file), 'utf8')) as PublicNames;
  return { version: path.basename(file, '.json'), names };
}

const sorted = (names: Names): Names =>
  Object.fromEntries(Object.entries(names).toSorted(([a], [b]) => (a < b ? -1 : 1)));

if (import.meta.main) {
  const { version } = readJson('package.json') as { version: string };
  const names = Object.entries(await collectPublicNames()).map(([kind, each]) => [kind, sorted(each)]);
  for (const file of readdirSync(snapshotFolder).filter((name) => name.endsWith('.json')))
    rmSync(path.join(snapshotFolder, file));
  const text = JSON.stringify(Object.fromEntries(names), null, 2);
  writeFileSync(path.join(snapshotFolder, `${version}.json`), `${text}\n`);
}
