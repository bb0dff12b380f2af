import { BatchWriteItemCommand, type AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileSnapshot } from '../../shared/config/compile-snapshot.ts';
import { emptyRows } from '../../shared/config/rows/read-table.ts';
import { enter, startConsoleRig, type ConsoleRig, type Visitor } from '../console/console-rig.ts';
import { runOps } from './run-ops.ts';

type Item = Record<string, AttributeValue>;

const bytes = new Uint8Array([1, 2]);
/** Members named like DynamoDB's types, and like the methods that JavaScript calls to convert to text. */
const members: Item = Object.fromEntries([
  ...['S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L'].map((name) => [name, { NULL: true }]),
  ['M', { M: { L: { BOOL: true } } }],
  ...['toString', 'valueOf', 'toJSON', 'constructor', 'size', 'length'].map((name) => [name, { NULL: true }]),
]) as Item;
const types: Readonly<Record<string, AttributeValue>> = {
  S: { S: 'odd' },
  N: { N: '1e120' },
  B: { B: bytes },
  BOOL: { BOOL: true },
  NULL: { NULL: true },
  SS: { SS: ['a', 'b'] },
  NS: { NS: ['1', '2'] },
  BS: { BS: [bytes] },
  L: { L: [{ NULL: true }, { M: members }, { B: bytes }] },
  M: { M: members },
};
/** Each command reads all of these; other types are read like one of them. */
const storedTypes = ['NULL', 'BS', 'N', 'M'];

/** Attributes that every row of a table may have, including the marks of the relay and this tool. */
const marks = ['_problem', '_warning', '_by', '_at', '_created', '_note', 'unknown'];
const tables: Readonly<Record<string, { row: Record<string, unknown>; key: string; names: string }>> = {
  channels: {
    key: 'id',
    row: {
      type: 'openai',
      endpoint: 'https://a.example/v1',
      models: ['gpt-4o'],
      state: true,
      params: { set: { seed: 1 } },
      cost: { 'gpt-4o': { input: 1, output: 2 } },
    },
    names:
      'name type dialect endpoint region secret models models.0 mapper mapper.gpt-4o cost cost.gpt-4o cost.gpt-4o.input cost.gpt-4o.tiers priority weight state connect_seconds first_content_seconds idle_seconds total_seconds params params.set params.set.seed params.drop params.stream params.efforts max_tokens_field _can _can.efforts',
  },
  charges: {
    key: 'id',
    row: {
      type: 'token-billing',
      models: ['gpt-4o'],
      input: 1,
      output: 2,
      tiers: [{ above: 9, input: 1, output: 2 }],
    },
    names:
      'from type models models.0 input output cached_input tiers tiers.0 tiers.0.above max_output_tokens image_tokens input_factor anonymous',
  },
  plans: {
    key: 'level',
    row: { price: 1, items: [{ id: 'a', value: 1, models: ['gpt-4o'] }] },
    names: 'price items items.0 items.0.id items.0.value items.0.models items.0.icon',
  },
  keys: {
    key: 'hash',
    row: { account: 'acme', hint: 'sk-a...b', budget: { amount: 1, period: 'day' } },
    names:
      'account agent models official enabled expires_at max_concurrency rpm budget budget.amount budget.period store manage made_by hint _replaces _leaked _made_with',
  },
  accounts: {
    key: 'account',
    row: { plan: { level: 1, since: '2026-01-01' }, contact: { email: 'a@b.example' }, alert_below: 5 },
    names:
      'enabled plan plan.level plan.since concurrency rpm tpm alert_below contact contact.email contact.webhook note _closed',
  },
  grants: { key: 'grant_id', row: { account: 'acme', amount: 5 }, names: 'amount reason _applied' },
};
const settings =
  'relay_closed subscription.enabled unpriced_models contact page account_page notices cors_origins time_zone content_urls limits aliases store search alerts payments';

let rig: ConsoleRig;
let visitor: Visitor;

beforeAll(async () => {
  rig = await startConsoleRig();
  visitor = await enter(await rig.serve());
  for (const table of Object.keys(tables)) await put(table, wholeRows(table));
  await put('accounts', [marshall({ account: 'acme' })]);
});
afterAll(async () => rig.stop());

/** Rows with one attribute of each type; their id is `path-type`, or ends with it in rows with numeric ids. */
const oddRows = (table: string, wanted: readonly string[]): Item[] =>
  [...pathsOf(table), ...marks]
    .flatMap((path) => wanted.map((type) => ({ name: `${path}-${type}`, set: [path], type })))
    .map((odd, at) => rowWith(table, { ...odd, at: at + 100 }));

/** Rows whose attributes, or whose marks, all have one type: single-row commands are tried on them. */
const wholeRows = (table: string): Item[] =>
  wholeTypes.flatMap((type, at) => [
    rowWith(table, {
      name: `all-${type}`,
      set: pathsOf(table).filter((path) => !path.includes('.')),
      type,
      at: 2 * at,
    }),
    rowWith(table, { name: `marks-${type}`, set: marks, type, at: 2 * at + 1 }),
  ]);
const wholeTypes = ['NULL', 'N', 'M'];
const wholeIds = (table: string): string[] => wholeRows(table).map((item) => idOf(table, item));

const pathsOf = (table: string): string[] => tables[table]?.names.split(' ') ?? [];
const isNumbered = (table: string): boolean => table === 'charges' || table === 'plans';
const idOf = (table: string, item: Item): string => {
  const id = item[tables[table]?.key ?? ''];
  return id?.S ?? id?.N ?? '';
};

interface Odd {
  name: string;
  set: readonly string[];
  type: string;
  at: number;
}

function rowWith(table: string, { name, set, type, at }: Odd): Item {
  const { row = {}, key = '' } = tables[table] ?? {};
  const item = marshall(row);
  for (const path of set) place(item, path.split('.'), types[type] ?? { NULL: true });
  const id = table === 'keys' ? (at + 0x10_0000).toString(16).padStart(64, '0') : name;
  return { ...item, [key]: isNumbered(table) ? { N: String(at + 1) } : { S: id } };
}

function place(item: Item, steps: readonly string[], value: AttributeValue): void {
  let inner: AttributeValue = { M: item };
  for (const [at, step] of steps.entries()) {
    const there: AttributeValue | undefined = inner.L ? inner.L[Number(step)] : inner.M?.[step];
    const next: AttributeValue = at === steps.length - 1 ? structuredClone(value) : (there ?? { M: {} });
    if (inner.L) inner.L[Number(step)] = next;
    else if (inner.M) inner.M[step] = next;
    inner = next;
  }
}

async function put(table: string, items: Item[]): Promise<void> {
  for (let at = 0; at < items.length; at += 25) {
    const requests = items.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } }));
    await rig.client.send(new BatchWriteItemCommand({ RequestItems: { [`relay-${table}`]: requests } }));
  }
}

async function said(line: string): Promise<string> {
  const key = `sk-${'a'.repeat(48)}`;
  const run = await runOps(line.split(' '), { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint }, key);
  return run.output + run.errors;
}

/** Lists commands, and pages (which begin with a slash), that fail by a bug. Pages mark a reported error by `<strong>Error:`. */
async function bugsIn(all: readonly string[]): Promise<string[]> {
  const bugs: string[] = [];
  for (const each of all) {
    const text = each.startsWith('/') ? await (await visitor.get(each.slice(1))).text() : await said(each);
    if (/unexpected error|(?<!<strong>)\bError:|[a-z]Error:/.test(text)) bugs.push(`${each}: ${text}`);
    for (const fault of rig.faults.splice(0)) bugs.push(`${each}: ${String(fault)}`);
  }
  return bugs;
}

describe('with an attribute of any type in a row', () => {
  it('the configuration compiles, and the row reports the error', () => {
    const rows = Object.fromEntries(
      ['channels', 'charges', 'plans'].map((table) => [
        table,
        oddRows(table, Object.keys(types)).map((item) => unmarshall(item, { wrapNumbers: Number })),
      ]),
    );
    const options = Object.values(types).flatMap((value) =>
      settings.split(' ').map((name) => unmarshall({ name: { S: name }, value }, { wrapNumbers: Number })),
    );
    const { results } = compileSnapshot(
      { ...emptyRows, ...rows, settings: options },
      { local: true, publishedAt: 1 },
    );
    // No attribute may be bytes, and optional ones are not required.
    const problems = new Map(results.map(({ table, key, problem }) => [`${table} ${key}`, problem]));
    for (const path of pathsOf('channels')) {
      const [bad, none] = [problems.get(`channels ${path}-BS`), problems.get(`channels ${path}-NULL`)];
      if (!path.startsWith('_')) expect([path, bad]).toEqual([path, expect.any(String)]);
      if (!/^(models|endpoint|cost.*input|state$)/.test(path))
        expect([path, none]).toEqual([path, undefined]);
    }
    expect(problems.get('channels models-NULL')).toContain('models: missing, expected a list');
    expect(problems.get('channels state-NULL')).toContain('until state is valid, the channel is disabled');
  });

  it.each(wholeTypes)('settings of type %s are checked, listed and shown', async (type) => {
    const value = types[type] ?? { NULL: true };
    await put(
      'settings',
      settings.split(' ').map((name) => ({ name: { S: name }, value })),
    );
    const lines = ['setting list', 'setting show search', 'setting off search --dry-run', '/versions/diff'];
    expect(await bugsIn(lines)).toEqual([]);
  });

  const verbs: Readonly<Record<string, string>> = {
    channels:
      '/channels/X|/channels/X/edit|channel show X|channel set X priority=3 --dry-run|channel off X --wait 0 --yes|channel on X --dry-run',
    charges: '/charges/X|charge show X|charge set X input=3 --dry-run|charge off X --wait 0 --yes',
    plans: 'plan show X|plan set X price=3 --dry-run|plan off X --wait 0 --yes',
    keys: '/keys/X/rotate|/keys/X/leaked|/keys/X/disable|key use X|key rotate X --dry-run|key set X account=other --dry-run|key set X rpm=5 --dry-run|key set X budget.amount=5 budget.period=day --dry-run|key set X models=gpt-4o --dry-run|key on X --dry-run|key leaked X --dry-run|key off X --yes',
    accounts:
      '/customers/X|/customers/X/edit|/customers/X/close|customer show X|customer set X note=text --dry-run|customer on X --dry-run|customer close X --dry-run|grant new X 5 --id i --dry-run|customer set X plan= --dry-run|key new X --dry-run|customer new X --dry-run|customer off X --yes',
    grants: 'grant show acme X|grant new acme 5 --id X --dry-run',
  };
  it.each(Object.entries(verbs))(
    'each verb and page on a row of %s works or reports why not',
    async (table, all) => {
      for (const id of wholeIds(table))
        expect(await bugsIn(all.split('|').map((each) => each.replace('X', id)))).toEqual([]);
    },
  );

  it('a row can be deleted, whatever numbers it contains', async () => {
    expect(await rig.ports.tables.scan('charges')).toEqual([]);
    const enabled = (await rig.ports.tables.scan('keys')).map((row) => row['enabled']);
    expect(new Set(enabled)).toEqual(new Set([false]));
  });

  describe('in any row', () => {
    beforeAll(async () => {
      for (const table of Object.keys(tables)) await put(table, oddRows(table, storedTypes));
    });

    it.each(
      `check --json|customer list|customer list --json|key list|key list --json|channel list|channel list --csv|charge list|charge list --json|charge explain gpt-4o --input 10|plan list|plan list --json|grant list|grant list --json|report|version diff|config export /dev/null|customer new fresh --dry-run|key new acme --dry-run|/?hours=24|/customers|/customers?order=balance|/customers?name=a|/customers/acme|/keys|/keys?text=000|/channels|/charges|/charges/new|/audit|/versions|/versions/diff|/statements|channel new new endpoint=https://b.example/v1 models=gpt-4o --dry-run`.split(
        '|',
      ),
    )('%s never fails with an internal error', async (each) => {
      expect(await bugsIn([each])).toEqual([]);
    });

    it('`check` lists each unused row, with its mark', async () => {
      const text = await said('check');
      for (const path of pathsOf('channels').filter((each) => !each.startsWith('_'))) {
        expect(text).toContain(`channels ${path}-BS: `);
      }
    });
  });

  it('a key stored in place of its hash is reported as leaked, and never shown in full', async () => {
    const keys = ['sk-vendor-key-19-ch', `sk-${'z9'.repeat(24)}`];
    await put(
      'keys',
      keys.map((hash) => marshall({ hash, account: 'acme', hint: 'mine' })),
    );
    for (const line of ['check', 'check --json', 'key list', 'key list --json', 'key list --csv']) {
      const text = await said(line);
      expect(text).toContain(
        'the SHA-256 of the key, but this is the key itself, exposed to everyone who can read the table. Delete this row and create',
      );
      for (const key of keys) expect(text).not.toContain(key);
    }
    const page = await (await visitor.get('keys?text=acme')).text();
    expect(page).toContain(
      'the SHA-256 of the key, but this is the key itself, exposed to everyone who can read the table. Delete this row and create',
    );
    for (const key of keys) expect(page).not.toContain(key);
  });
});
