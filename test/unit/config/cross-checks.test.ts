import { describe, expect, it } from 'vitest';
import { addStackWarnings } from '../../../shared/config/cross-checks.ts';
import type { CompileOptions } from '../../../shared/config/compile-snapshot.ts';
import { validateAccountRow } from '../../../shared/config/rows/alerted-account.ts';
import { validateKeyRow } from '../../../shared/config/rows/key-row.ts';
import type { ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { channel, compile } from './rows.ts';

const charge = (attributes: Record<string, unknown> = {}) => ({
  id: 1,
  type: 'token-billing',
  models: ['gpt-4o'],
  input: 0.01,
  output: 0.02,
  ...attributes,
});
const plan = (models: string[]) => ({ level: 1, items: [{ id: 'chat', value: 100, models }] });

const warningsOf = (rows: Partial<ConfigRows>, options: Partial<CompileOptions> = {}) =>
  compile(rows, options).results.flatMap(({ table, key, warning }) =>
    warning === undefined ? [] : [`${table} ${key}: ${warning}`],
  );

describe('a suspicious row in use', () => {
  it('is reported when it serves a model without a price', () => {
    const channels = [channel({ models: ['gpt-4o', 'a', 'b', 'c', 'd', 'e', 'f'] })];
    expect(warningsOf({ channels, charges: [charge()] })).toEqual([
      'channels main: models: no price for a, b, c, d, e and 1 more, so calls are free',
    ]);
    const refuse = { name: 'unpriced_models', value: 'refuse' };
    expect(warningsOf({ channels, charges: [charge()], settings: [refuse] })[0]).toContain(
      'so calls are refused (setting unpriced_models)',
    );
    expect(warningsOf({ channels: [channel({ state: false })] })).toEqual([]);
  });

  it('is reported when refusals taught that it costs each call a retry', () => {
    const channels = [channel({ models: ['gpt-4o', 'gpt-5'] }), channel({ id: 'second' })];
    const fact = { channel: 'main', model: 'gpt-5', untilMs: 1 };
    const learned = [
      { ...fact, fact: 'speaks:other' },
      { ...fact, fact: 'speaks:other', model: 'gpt-4o' },
      { ...fact, fact: 'refuses_limit:16384' },
      { ...fact, fact: 'keeps_state' },
      { ...fact, fact: 'wants_back:thinking' },
      { ...fact, fact: 'efforts:low+high' },
      { ...fact, fact: 'refuses_limit:16384', model: 'not served' },
      { ...fact, fact: 'refuses_limit:16384', channel: 'gone' },
    ] as const;
    const charges = [charge({ models: ['gpt-4o', 'gpt-5'] })];
    expect(warningsOf({ channels, charges }, { learned })).toEqual([
      'channels main: dialect: gpt-4o, gpt-5 took calls with tools only in the dialect "other"; set it here, so that calls use it at once; params.max_output_tokens: absent, gpt-5 refused a limit of 16384; set it to the maximum of the model, so that the relay lowers limits to it; params.model_rules: gpt-5 refused calls until this held; write {"gpt-5":{"wants_back":"thinking"}}, so that it needs no second request; params.model_rules: gpt-5 refused calls until this held; write {"gpt-5":{"efforts":["low","high"]}}, so that it needs no second request',
    ]);
    const limited = [channel({ models: ['gpt-4o', 'gpt-5'], params: { max_output_tokens: 9 } })];
    const [refuses] = learned.slice(2);
    expect(warningsOf({ channels: limited, charges }, { learned: refuses ? [refuses] : [] })).toEqual([]);
    const model_rules = { 'gpt-*': { efforts: ['low', 'high'] } };
    const told = [channel({ models: ['gpt-4o', 'gpt-5'], params: { model_rules } })];
    expect(warningsOf({ channels: told, charges }, { learned: learned.slice(5, 6) })).toEqual([]);
  });

  it('is reported for unknown words of the upstream, until the row explains them', () => {
    const of = { channel: 'main', model: '*', untilMs: 1 };
    const learned = [
      { ...of, fact: 'finish_word:brand_new+4' },
      { ...of, fact: 'error_word:brand_new+2' },
      { ...of, fact: 'finish_word:network_error+2' },
      { ...of, fact: 'error_word:arrearage+2' },
      { ...of, fact: 'finish_word:brand_new+4', channel: 'gone' },
    ] as const;
    const charges = [charge({ models: ['gpt-4o'] })];
    const warned = (params: object) =>
      warningsOf({ channels: [channel({ models: ['gpt-4o'], params })], charges }, { learned }).join();
    expect(warned({}).match(/add (\{.*?\}\})/g)).toEqual([
      'add {"finish":{"brand_new":"stop"}}',
      'add {"errors":{"brand_new":"caller"}}',
    ]);
    expect(warned({ words: { finish: { 'brand*': 'length' } } })).not.toContain('"finish":');
    expect(warned({ words: { finish: { 'brand*': 'length' }, errors: { brand_new: 'account' } } })).toBe('');
  });

  it('is reported in one sentence for many models', () => {
    const models = Array.from({ length: 90 }, (_, i) => `model-${i}`);
    const learned = models.map((model) => ({
      channel: 'main',
      model,
      untilMs: 1,
      fact: 'stop:false' as const,
    }));
    const [warning = ''] = warningsOf(
      { channels: [channel({ models })], charges: [charge({ models })] },
      { learned },
    );
    expect(warning).toMatch(/model-0, .* and 85 more .*\{"model-0":\{"stop":false\}\}/);
    expect(warning.length).toBeLessThan(300);
  });

  it('is reported by the tools together with what only the running stack knows', () => {
    const raw = channel({ models: ['gpt-4o'], secret: 'env:KEY', mapper: { other: 'x' } });
    const fact = { channel: 'main', model: 'gpt-4o', untilMs: 1 };
    const facts = [
      'speaks:other',
      'refuses_limit:9',
      'limit_over_context:9',
      'forced_calls:false',
      'error_word:brand_new+2',
    ] as const;
    const known = {
      learned: facts.map((each) => Object.assign({}, fact, { fact: each })),
      unreadableSecrets: new Map([['env:KEY', 'it is empty; or unset']]),
    };
    const warningOf = (row: object, options = {}) =>
      compile({ channels: [row], charges: [charge()] }, { local: true, ...options }).results[0]?.warning;
    const mark = String(warningOf(raw, known));
    const marked = { ...raw, _warning: mark };
    const shown = String(addStackWarnings(marked, warningOf(marked)));
    for (const each of [
      'mapper: ',
      'secret: ',
      'dialect: ',
      'limit of 9; ',
      'a limit of 9; set it to the',
      'write {',
    ])
      expect(shown).toContain(each);
    expect(shown).toHaveLength(mark.length);
    // The row may have been fixed since the mark was written.
    expect(
      addStackWarnings({ ...marked, _warning: 'mapper: maps other, which is not in models' }, undefined),
    ).toBe(undefined);
  });

  it("is reported when it prices unserved models, or the upstream's name of a model", () => {
    const channels = [channel({ mapper: { 'gpt-4o': 'gpt-4o-2024' } })];
    const charges = [charge({ models: ['gpt-4o', 'gpt-5', 'gpt-4o-2024'] })];
    expect(warningsOf({ channels, charges })).toEqual([
      "charges 1: models: no enabled channel serves gpt-5, gpt-4o-2024 (gpt-4o-2024 is the upstream's name for gpt-4o)",
    ]);
    const planned = channel({ id: 'new', models: ['gpt-5', 'gpt-4o-2024'], state: false });
    expect(warningsOf({ channels: [...channels, planned], charges })).toEqual([]);
  });

  const nothing = 'input, output: nothing is charged (use the type non-billing if intended)';
  it.each([
    [{ input: 0, output: 0 }, nothing],
    [{ input: 1e-16, output: 4e-13 }, nothing],
    [{ type: 'non-billing' }, 'input, output: ignored, because the type is non-billing'],
    [{ type: 'times-billing', input: 5 }, 'input: ignored, because the type is times-billing'],
    [
      { type: 'non-billing', input: 0, output: 0, cache_write_1h: 0.1 },
      'cache_write_1h: ignored, because the type is non-billing',
    ],
  ])('is reported when its price looks wrong: %j', (attributes, warning) => {
    const rows = { channels: [channel()], charges: [charge(attributes)] };
    expect(warningsOf(rows)).toEqual([`charges 1: ${warning}`]);
  });

  it('is reported when it is a plan for unserved models, or for none', () => {
    const rows = { channels: [channel()], charges: [charge()] };
    expect(warningsOf({ ...rows, plans: [plan(['gpt-4o', 'gpt-5'])] })).toEqual([
      'plans 1: items[0].models: no enabled channel serves gpt-5',
    ]);
    expect(warningsOf({ ...rows, plans: [plan([])] })).toEqual([
      'plans 1: items[0].models: empty, so this entry covers nothing',
    ]);
  });

  it('is reported when its secret is unreadable', () => {
    const secret = 'ssm:/relay/relay/channels/api.example.com/typo';
    const unreadableSecrets = new Map([[secret, 'there is none of this name']]);
    const rows = {
      channels: [channel({ secret: [secret, 'ssm:/relay/relay/channels/api.example.com/fine'] })],
      charges: [charge()],
    };
    expect(warningsOf(rows, { unreadableSecrets })).toEqual([
      `channels main: secret: ${secret} cannot be read: there is none of this name`,
    ]);
  });

  it('is reported with its problem only, when it has one', () => {
    const { rows } = compile({ channels: [channel()] });
    const { results } = compile({ channels: [channel({ weight: -1 })] }, { earlier: rows });
    expect(results).toEqual([
      { table: 'channels', key: 'main', problem: expect.stringContaining('weight') as string },
    ]);
  });
});

describe('a row edited by hand', () => {
  const padded = (path: string): string => `${path}: "gpt-4o " starts or ends with spaces`;
  const models = ['gpt-4o '];
  it.each<[string, Partial<ConfigRows>, string]>([
    [
      'a channel without state',
      { channels: [{ ...channel(), state: undefined }] },
      'state: missing, so this',
    ],
    ['a model of a channel', { channels: [channel({ models })] }, padded('models[0]')],
    [
      'a price group',
      { settings: [{ name: 'price_groups', value: { 'gold ': [{ models: ['m'], factor: 0.5 }] } }] },
      'value: the name "gold " starts or ends with spaces',
    ],
    ['a model of a price', { charges: [charge({ models })] }, padded('models[0]')],
  ])('is marked: %s', (_, rows, warning) => {
    expect(compile(rows).results[0]?.warning).toContain(warning);
  });

  it('may have spaces in texts for people and in request fields', () => {
    const row = channel({ name: ' a ', params: { set: { stop: ' end ' } } });
    expect(compile({ channels: [row] }).results[0]?.warning ?? '').not.toContain('spaces');
  });

  it('is also marked among keys and accounts', () => {
    const hash = 'a'.repeat(64);
    expect(validateKeyRow({ hash, account: 'acme', models }).warning).toBe(padded('models[0]'));
    expect(validateAccountRow({ account: 'acme', price_group: 'gold ' }).warning).toBe(
      'price_group: "gold " starts or ends with spaces',
    );
  });
});
