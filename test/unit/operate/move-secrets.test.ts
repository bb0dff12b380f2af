import { beforeEach, describe, expect, it } from 'vitest';
import { compileSnapshot } from '../../../shared/config/compile-snapshot.ts';
import { emptyRows, keyAttributes, type ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { isUnbound } from '../../../shared/config/rows/secret-reference.ts';
import { listSecrets } from '../../../shared/operate/config/row-changes.ts';
import type { OperatorPorts, RawRow, RowWrite, SecretWrite } from '../../../shared/operate/operator-ports.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import { carryOutMove, planMoveSecrets } from '../../../shared/operate/secrets.ts';

/**
 * A relay whose secrets have no purpose: two channels with one key that call two hosts, one with two keys, and all
 * settings.
 */
const stripe = {
  live: true,
  webhook_secret: ['ssm:/relay/relay/hook', 'ssm:/relay/relay/payments/new-hook'],
  link_secret: 'secretsmanager:relay/links',
  rates: { usd: 7 },
  checkout: { secret_key: 'ssm:/relay/relay/stripe', currency: 'usd' },
};
const channel = { models: ['m'], state: true };
const before = (): ConfigRows => ({
  ...emptyRows,
  channels: [
    { ...channel, id: 'one', endpoint: 'https://a.example.com/v1', secret: 'ssm:/relay/relay/shared' },
    { ...channel, id: 'two', endpoint: 'https://b.example.com:8443/v1', secret: 'ssm:/relay/relay/shared' },
    {
      ...channel,
      id: 'three',
      type: 'anthropic',
      secret: ['ssm:/relay/relay/channels/claude', 'secretsmanager:relay/team/claude'],
    },
    { ...channel, id: 'keyless', endpoint: 'https://c.example.com/v1' },
    { ...channel, id: 'foreign', endpoint: 'https://c.example.com/v1', secret: 'ssm:/relay/other/key' },
  ],
  settings: [
    { name: 'payments', value: { stripe } },
    { name: 'alerts', value: { webhook: 'https://ops.example.com/', secret: 'ssm:/relay/relay/alerts' } },
    { name: 'search', value: { type: 'tavily', secret: 'ssm:/relay/relay/tavily' } },
  ],
});
const movedTo = {
  'channels/a.example.com/shared': 'of shared',
  'channels/b.example.com_8443/shared': 'of shared',
  'channels/api.anthropic.com/claude': 'of channels/claude',
  'channels/api.anthropic.com/team/claude': 'of team/claude',
  'payments/hook': 'of hook',
  'payments/new-hook': 'of payments/new-hook',
  'payments/links': 'of links',
  'payments/api.stripe.com/stripe': 'of stripe',
  'alerts/alerts': 'of alerts',
  'search/api.tavily.com/tavily': 'of tavily',
};

class Killed extends Error {}

let rows: ConfigRows;
/** The newest version, if it differs from the compiled tables. */
let served: Partial<ConfigRows>;
/** Values by reference. */
let stored: Map<string, string>;
let sleptMs: number;
let steps: number;
/** The write at which the process dies, before or after it is applied. */
let killedAt: { step: number; isDone: boolean } | undefined;

const nameOf = (reference: string): string =>
  reference.replace(/^(ssm:\/relay\/|secretsmanager:)relay\//, '');
const readable = (): string[] =>
  listSecrets(rows)
    .map(({ reference }) => reference)
    .filter((reference) => !reference.includes('/other/'));

async function writes<Made>(work: () => Made): Promise<Made> {
  steps += 1;
  const dies = killedAt?.step === steps;
  if (dies && !killedAt?.isDone) throw new Killed();
  const made = work();
  if (dies) throw new Killed();
  return made;
}

function putRow(write: RowWrite): boolean {
  if (write.kind !== 'update') throw new Error('only updates');
  const table = write.table as 'channels' | 'settings';
  const name = keyAttributes[table];
  const row = (rows[table] as RawRow[]).find((each) => each[name] === write.key[name]);
  const isSame = Object.entries(write.unchanged).every(
    ([each, value]) => JSON.stringify(row?.[each]) === JSON.stringify(value),
  );
  if (row && isSame) Object.assign(row, structuredClone(write.attributes));
  return row !== undefined && isSame;
}

const ports = {
  target: { stack: 'relay', local: false },
  clock: { now: () => sleptMs, sleep: async (ms: number) => void (sleptMs += ms) },
  config: {
    tables: async () => structuredClone(rows),
    newest: async () => ({ version: 1 }),
    rows: async () => {
      const earlier = { ...emptyRows, ...served };
      return compileSnapshot(rows, { local: false, publishedAt: 0, earlier }).rows;
    },
  },
  tables: { write: (write: RowWrite) => writes(() => putRow(write)) },
  secrets: {
    read: async (reference: string) => {
      const value = stored.get(reference);
      if (value === undefined) throw new Failure(`no ${reference}`);
      return value;
    },
    put: ({ reference, replace, conflict }: SecretWrite, value: string) =>
      writes(() => {
        if (stored.has(reference) && !replace) throw conflict;
        stored.set(reference, value);
      }),
    remove: (reference: string) => writes(() => stored.delete(reference)),
  },
} as unknown as OperatorPorts;

const move = async () => carryOutMove(ports, await planMoveSecrets(ports), 60);

beforeEach(() => {
  rows = before();
  stored = new Map(readable().map((reference) => [reference, `of ${nameOf(reference)}`]));
  [sleptMs, steps, killedAt, served] = [0, 0, undefined, {}];
});

function expectMoved(): void {
  expect(Object.fromEntries([...stored].map(([reference, value]) => [nameOf(reference), value]))).toEqual(
    movedTo,
  );
  expect(new Set(readable())).toEqual(new Set(stored.keys()));
  expect(
    listSecrets(rows).filter((named) => isUnbound(named) && !named.reference.includes('/other/')),
  ).toEqual([]);
  expect(JSON.stringify(rows)).not.toContain('_moved":[');
}

describe('moving secrets', () => {
  it('stores each under its purpose and host, and deletes the old ones when no call reads them', async () => {
    const plan = await planMoveSecrets(ports);
    expect(plan.questions).toHaveLength(1);
    expect(plan.effect).toContain(
      'Change one secret from ssm:/relay/relay/shared to ssm:/relay/relay/channels/a.example.com/shared',
    );
    expect(stored.size).toBe(9);
    expect(await carryOutMove(ports, plan, 60)).toMatchObject({ moved: 6, kept: [] });
    expectMoved();
    expect(sleptMs).toBeGreaterThanOrEqual(15_000);
    expect(stored.has('secretsmanager:relay/payments/links')).toBe(true);
    expect((await planMoveSecrets(ports)).changes).toEqual([]);
  });

  it('completes when it is repeated after any crash, and no row ever names a deleted secret', async () => {
    await move();
    const all = steps;
    expect(all).toBeGreaterThan(25);
    for (let step = 1; step <= all; step += 1)
      for (const isDone of [false, true]) {
        rows = before();
        stored = new Map(readable().map((reference) => [reference, `of ${nameOf(reference)}`]));
        [steps, killedAt] = [0, { step, isDone }];
        await expect(move()).rejects.toThrow(Killed);
        for (const reference of readable()) expect(stored.has(reference)).toBe(true);
        killedAt = undefined;
        await move();
        expectMoved();
      }
  });

  it('keeps secrets that another row names, if that row is invalid or was changed meanwhile', async () => {
    const channels = rows.channels as RawRow[];
    channels.push({
      ...channel,
      id: 'thief',
      endpoint: 'https://evil.example/v1',
      secret: 'ssm:/relay/relay/stripe',
    });
    const plan = await planMoveSecrets(ports);
    expect(plan.warnings).toEqual([
      expect.stringContaining('channels thief is left unchanged: found a secret of payments'),
    ]);
    expect(await carryOutMove(ports, plan, 60)).toMatchObject({
      moved: 6,
      kept: ['ssm:/relay/relay/stripe'],
    });
    expect(stored.get('ssm:/relay/relay/stripe')).toBe('of stripe');
    expect([...stored.keys()].filter((each) => each.includes('evil'))).toEqual([]);
    rows.channels = channels.filter(({ id }) => id !== 'thief');
    await move();
    expectMoved();
  });

  it('keeps secrets that the last valid version of an invalid row names', async () => {
    served = { channels: rows.channels };
    const [one, two, ...others] = rows.channels as RawRow[];
    rows.channels = [one, { ...two, secret: 'a key, typed in by mistake' }, ...others];
    expect(await carryOutMove(ports, await planMoveSecrets(ports), 60)).toMatchObject({
      kept: ['ssm:/relay/relay/shared'],
    });
    expect(stored.get('ssm:/relay/relay/shared')).toBe('of shared');
  });

  it('overwrites no different value, and still moves the other secrets', async () => {
    stored.set('ssm:/relay/relay/payments/hook', 'newer');
    await expect(move()).rejects.toThrow('ssm:/relay/relay/payments/hook already has a different value');
    expect(stored.get('ssm:/relay/relay/payments/hook')).toBe('newer');
    expect(rows.channels[0]).toMatchObject({ secret: 'ssm:/relay/relay/channels/a.example.com/shared' });
    expect(JSON.stringify(rows.settings)).toContain('ssm:/relay/relay/hook');
    expect(stored.get('ssm:/relay/relay/hook')).toBe('of hook');
  });
});
