import { describe, expect, it } from 'vitest';
import { ChargeRow } from '../../../shared/config/rows/charge-row.ts';
import { planImport, type ImportInput } from '../../../shared/operate/prices/import-charges.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** The rows of a list imported into an empty table, at 10 yuan per dollar. */
const rowsOf = async (list: object, more?: Partial<ImportInput>): Promise<unknown[]> =>
  (await importOf(list, more)).rows;

async function importOf(list: object, more: Partial<ImportInput> = {}) {
  const ports = {
    clock: new VirtualClock(),
    tables: { scan: async () => [], get: async () => undefined },
  } as unknown as OperatorPorts;
  const input = { list: JSON.stringify(list), rate: '10', markup: '0', ...more };
  const { changes, effect } = await planImport(ports, input);
  const rows = changes.flatMap((change) =>
    'row' in change && change.table === 'charges' ? [change.row] : [],
  );
  rows.forEach((row) => ChargeRow.parse(row));
  return { rows, effect };
}

const tokenRule = { id: 1, type: 'token-billing', models: ['m'] };
const short = { input: 0.03, output: 0.15 };

describe('a price list in dollars per token', () => {
  const plain = { mode: 'chat', input_cost_per_token: 3e-6, output_cost_per_token: 1.5e-5 };

  it('fills in cache prices, a tier with its own prices, and the maximum', async () => {
    const entry = {
      ...plain,
      cache_read_input_token_cost: 3e-7,
      cache_creation_input_token_cost: 3.75e-6,
      cache_creation_input_token_cost_above_1hr: 6e-6,
      input_cost_per_token_above_200k_tokens: 6e-6,
      output_cost_per_token_above_200k_tokens: 2.25e-5,
      cache_read_input_token_cost_above_200k_tokens: 6e-7,
      cache_creation_input_token_cost_above_200k_tokens: 7.5e-6,
      cache_creation_input_token_cost_above_1hr_above_200k_tokens: 1.2e-5,
      max_tokens: 1_000_000,
      max_output_tokens: 64_000,
    };
    expect(await rowsOf({ m: entry })).toEqual([
      {
        ...tokenRule,
        ...short,
        cached_input: 0.003,
        cache_write: 0.0375,
        cache_write_1h: 0.06,
        tiers: [
          {
            above: 200_000,
            input: 0.06,
            output: 0.225,
            cached_input: 0.006,
            cache_write: 0.075,
            cache_write_1h: 0.12,
          },
        ],
        max_output_tokens: 64_000,
      },
    ]);
  });

  it('uses the base price where a tier has none, and omits prices of other kinds of calls', async () => {
    const entry = {
      ...plain,
      cache_read_input_token_cost: 3e-6,
      input_cost_per_token_above_128k_tokens: 6e-6,
      input_cost_per_token_above_64_tokens: 4e-6,
      output_cost_per_token_above_256k_tokens: null,
      input_cost_per_token_above_272k_tokens_priority: 9,
      input_cost_per_token_batches: 1,
      max_output_tokens: 'set to the maximum',
    };
    const tiers = [
      { above: 64, input: 0.04, output: 0.15 },
      { above: 128_000, input: 0.06, output: 0.15 },
    ];
    expect(await rowsOf({ m: entry })).toEqual([{ ...tokenRule, ...short, tiers }]);
  });

  it('reads tiers that are written as ranges', async () => {
    const range = (from: number, cost: number) => ({
      range: [from, from + 32_000],
      input_cost_per_token: cost,
      output_cost_per_token: cost,
    });
    const entry = { mode: 'chat', tiered_pricing: [range(32_000, 2e-6), range(0, 1e-6)] };
    expect(await rowsOf({ m: entry })).toEqual([
      { ...tokenRule, input: 0.01, output: 0.01, tiers: [{ above: 32_000, input: 0.02, output: 0.02 }] },
    ]);
  });

  it('skips entries with an invalid price', async () => {
    const auto = { ...plain, input_cost_per_token: -1 };
    const strange = { ...plain, cache_read_input_token_cost: 'free' };
    expect(await rowsOf({ m: plain, auto, strange })).toHaveLength(1);
  });

  it('turns a service tier into a factor if it multiplies all prices alike, including those of tiers', async () => {
    const cached = { cache_read_input_token_cost: 3e-7, input_cost_per_token_above_200k_tokens: 6e-6 };
    const entry = {
      ...plain,
      ...cached,
      input_cost_per_token_priority: 5.25e-6,
      output_cost_per_token_priority: 2.625e-5,
      cache_read_input_token_cost_priority: 5.25e-7,
      input_cost_per_token_above_200k_tokens_priority: 1.05e-5,
      input_cost_per_token_flex: 1.5e-6,
      output_cost_per_token_flex: 7.5e-6,
      cache_read_input_token_cost_flex: 3e-7,
      input_cost_per_token_above_200k_tokens_flex: 3e-6,
    };
    const { rows, effect } = await importOf({ m: entry });
    expect(rows).toMatchObject([{ ...tokenRule, ...short, service_tiers: { priority: 1.75 } }]);
    expect(effect.join('\n')).toMatch(/may ask for service tiers.*: priority \(1 model\)$/m);
    const left = effect.filter((line) => line.startsWith('Not imported')).join('\n');
    for (const field of Object.keys(entry))
      expect([field, left.includes(`${field} (`)]).toEqual([field, field.endsWith('_flex')]);
  });

  it('names each field with an unsupported price and its models, but no field with the standard price', async () => {
    const lost = {
      input_cost_per_token_batches: 1.5e-6,
      search_context_cost_per_query: { search_context_size_low: 0.01 },
      input_cost_per_audio_token: 1e-5,
      output_cost_per_reasoning_token: 6e-5,
      input_cost_per_request: 0.005,
      fedramp_uplift_multiplier: 1.2,
      citation_cost_per_token: 2e-6,
    };
    const ranges = [
      {
        range: [0, 1_000],
        input_cost_per_token: 1e-6,
        output_cost_per_token: 1e-6,
        output_cost_per_reasoning_token: 4e-6,
      },
    ];
    const same = {
      output_cost_per_reasoning_token: 1.5e-5,
      input_cost_per_image_token: 3e-6,
      cache_read_input_token_cost: 3e-7,
      input_cost_per_token_cache_hit: 3e-7,
      output_cost_per_audio_token: 0,
    };
    const { effect } = await importOf({
      m: { ...plain, ...lost },
      other: { ...plain, input_cost_per_request: 0.01 },
      ranged: { mode: 'chat', tiered_pricing: ranges },
      same: { ...plain, ...same },
    });
    const left = effect.filter((line) => line.startsWith('Not imported')).join('\n');
    expect(left.match(/\w+ \(\d+ models?\)/g)?.toSorted()).toEqual([
      'citation_cost_per_token (1 model)',
      'fedramp_uplift_multiplier (1 model)',
      'input_cost_per_audio_token (1 model)',
      'input_cost_per_request (2 models)',
      'input_cost_per_token_batches (1 model)',
      'output_cost_per_reasoning_token (2 models)',
      'search_context_cost_per_query (1 model)',
    ]);
    expect(left).toMatch(/calls that think may cost you more.*: output_cost_per_reasoning_token/);
    expect((await importOf({ same: { ...plain, ...same } })).effect.join()).not.toContain('Not imported');
  });

  it('reads embedding models, which have no output', async () => {
    const vectors = { mode: 'embedding', input_cost_per_token: 2e-8, output_cost_per_token: 0 };
    expect(await rowsOf({ m: vectors })).toEqual([{ ...tokenRule, input: 0.0002, output: 0 }]);
  });

  describe('hourly prices', () => {
    const low = { input_cost_per_token: 1.5e-6, output_cost_per_token: 7.5e-6 };
    const entryOf = (off_peak_pricing: object) => ({ m: { ...plain, off_peak_pricing } });
    const hours = { name: 'off-peak', zone: 'UTC', input: 0.015, output: 0.075 };

    it.each<[string, object, object[]]>([
      [
        'over midnight, split there',
        { hours_utc: '16:30-00:30', ...low },
        [
          { ...hours, from: '00:00', to: '00:30' },
          { ...hours, from: '16:30', to: '24:00' },
        ],
      ],
      [
        'of several windows, with the standard price where they set none',
        { hours_utc: ['1:00-02:00', '01:30-03:00'], input_cost_per_token: 1.5e-6 },
        [{ ...hours, output: 0.15, from: '01:00', to: '03:00' }],
      ],
      [
        'by the weekdays of another zone, as DeepSeek has them',
        {
          weekday_timezone: 'Asia/Shanghai',
          windows: [
            { hours_utc: ['10:00-01:00', '04:00-06:00'], weekdays: ['mon', 'Tuesday', 3, 4, 5] },
            { hours_utc: '00:00-00:00', weekdays: ['sat', 'sun'] },
          ],
          ...low,
        },
        [
          ...['00:00-09:00', '12:00-14:00', '18:00-24:00'].map((span) =>
            Object.assign({}, hours, {
              days: ['mon', 'tue', 'wed', 'thu', 'fri'],
              from: span.slice(0, 5),
              to: span.slice(6),
              zone: 'Asia/Shanghai',
            }),
          ),
          { ...hours, days: ['sat', 'sun'], from: '00:00', to: '24:00', zone: 'Asia/Shanghai' },
        ],
      ],
      ['of none', {}, []],
    ])('become windows %s', async (_what, block, windows) => {
      const [row] = (await rowsOf(entryOf(block))) as { windows?: object[] }[];
      expect(row).toMatchObject({ ...tokenRule, ...short });
      expect(row?.windows ?? []).toEqual(windows);
    });

    it.each<[string, object]>([
      ['a zone whose clocks change', { hours_utc: '01:00-02:00', weekday_timezone: 'Europe/Berlin', ...low }],
      ['a zone that does not exist', { hours_utc: '01:00-02:00', weekday_timezone: 'Mars/Base', ...low }],
      ['invalid hours', { hours_utc: 'at night', ...low }],
      ['invalid days', { windows: [{ hours_utc: '01:00-02:00', weekdays: ['payday'] }], ...low }],
      ['no prices', { hours_utc: '01:00-02:00' }],
    ])('are skipped for %s, with a report', async (_what, block) => {
      const { effect, rows } = await importOf(entryOf(block));
      expect(rows).toEqual([{ ...tokenRule, ...short }]);
      expect(effect.join()).toContain(
        "Off-peak hours can't be read, so the standard price applies all day: m",
      );
    });

    it('are reported with the models that have them', async () => {
      const { effect } = await importOf(entryOf({ hours_utc: '01:00-02:00', ...low }));
      expect(effect.join()).toContain('Off-peak prices become windows: m');
    });
  });
});
