import { describe, expect, it } from 'vitest';
import { readCharge } from '../../../shared/config/rows/charge-row.ts';
import { GrantRow } from '../../../shared/config/rows/grant-row.ts';
import { readRow } from '../../../shared/config/rows/read-row.ts';
import { parseDecimalText, parsePricePair } from '../../../infra/ops/cli/option-values.ts';
import { parseTypedNumber } from '../../../infra/ops/fields/row-field.ts';
import { channel, compile } from './rows.ts';

const rowOf = (reading: object, name: string): unknown =>
  'row' in reading ? (reading.row as Record<string, unknown>)[name] : undefined;
function tryOrNothing(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const row = (more: object = {}) => ({
  id: 1,
  type: 'token-billing',
  models: ['gpt-4o'],
  input: 0.01,
  output: 0.02,
  ...more,
});
const tier = (above: number, more: object = {}) => ({ above, input: 0.02, output: 0.04, ...more });
const amount = 'expected a number of 0 or more, with a decimal point, such as 0.018';
const cache = { cached_input: 0.001, cache_write: 0.0125, cache_write_1h: 0.02 };

const peak = { name: 'peak', from: '09:00', to: '12:00', zone: 'Asia/Shanghai', factor: 2 };

const hourProblems: [object, string][] = [
  [{ from: '9:00' }, 'windows[0].from: found "9:00", expected a time of day such as "09:00"'],
  [{ from: '24:00' }, 'windows[0].from: found "24:00", expected a time of day'],
  [{ to: '24:01' }, 'windows[0].to: found "24:01", expected a time of day'],
  [{ zone: 'Asia/Beijing' }, 'windows[0].zone: found "Asia/Beijing", expected the name of a time zone'],
  [{ zone: undefined }, 'windows[0].zone: missing, expected the name of a time zone'],
  [{ days: ['monday'] }, 'windows[0].days[0]: found "monday", expected a list of mon, tue'],
  [{ days: [] }, 'windows[0].days: found [], expected a list of mon, tue'],
  [{ except: ['2026-02-29'] }, 'windows[0].except[0]: found "2026-02-29", expected a date such as'],
  [{ except: ['1 May'] }, 'windows[0].except[0]: found "1 May", expected a date such as'],
  [{ name: 'Peak' }, 'windows[0].name: found "Peak", expected a name of up to 32 characters'],
  [{ factor: undefined }, 'expected windows that each have either a factor or prices'],
  [{ factor: undefined, input: 1 }, 'expected windows that each have either a factor or prices'],
  [{ input: 1, output: 2 }, 'expected windows that each have either a factor or prices'],
];

describe('a billing rule', () => {
  it.each([
    [{ windows: [peak, { ...peak, from: '14:00', to: '18:00' }] }],
    [{ windows: [{ ...peak, days: ['sat'], except: ['2028-02-29'], from: '22:00', to: '06:00' }] }],
    [{ windows: [{ ...peak, factor: undefined, input: 1, output: 2, tiers: [tier(5)] }] }],
    [{ type: 'times-billing', input: 0, windows: [{ ...peak, factor: undefined, output: 2 }] }],
  ])('accepts hours with %j', (more) => {
    const written = JSON.parse(JSON.stringify(row(more))) as { windows: object[] };
    expect(readCharge(written)).toMatchObject({ row: { windows: written.windows } });
  });

  it('accepts a date, tiers and limits for calls of its models', () => {
    const more = {
      ...cache,
      max_output_tokens: 8_192,
      default_output_tokens: '4096',
      image_tokens: 765,
      input_factor: 1.3,
    };
    const tiers = [tier(128_000, cache), tier(256_000, cache)];
    expect(readCharge(row({ ...more, tiers, from: '2027-01-01T08:00:00+08:00' }))).toEqual({
      row: {
        ...row(more),
        default_output_tokens: 4_096,
        tiers,
        from: Date.UTC(2027, 0, 1),
        anonymous: false,
      },
    });
  });

  it.each<[object, string]>([
    [
      { from: '2027-01-01T08:00:00' },
      'from: found "2027-01-01T08:00:00", expected an ISO 8601 time with a time zone',
    ],
    [{ tiers: [tier(200), tier(100)] }, 'expected tiers in ascending order of above, each different'],
    [{ tiers: [tier(200), tier(200)] }, 'expected tiers in ascending order of above, each different'],
    [{ tiers: [tier(0)] }, 'tiers[0].above: found 0, expected a whole number of input tokens, 1 or more'],
    [{ tiers: [{ above: 5, input: 1 }] }, `tiers[0].output: missing, ${amount}`],
    [{ tiers: [tier(5, { cached: 1 })] }, 'tiers[0].cached: unknown attribute'],
    [{ tiers: tier(5) }, 'expected a list of {above, input, output,'],
    ...['0,018', '-0.1'].map((input): [object, string] => [{ input }, `input: found "${input}", ${amount}`]),
    ...Object.keys(cache).map((name): [object, string] => [{ [name]: -1 }, `${name}: found -1, ${amount}`]),
    ...[0, -1, 100.5, 0.000_000_1, 'half', '0'].map((factor): [object, string] => [
      { service_tiers: { flex: factor } },
      `service_tiers.flex: found ${JSON.stringify(factor)}, expected a`,
    ]),
    ...['default', 'auto', 'standard_only', 'Flex', '1x', 'x'.repeat(33), ''].map(
      (name): [object, string] => [
        { service_tiers: { [name]: 2 } },
        'expected a service tier other than the standard one',
      ],
    ),
    [
      { service_tiers: ['flex'] },
      'service_tiers: found ["flex"], expected a map of service tiers to factors',
    ],
    [{ service_tiers: 0.5 }, 'service_tiers: found 0.5, expected a map of service tiers to factors'],
    ...hourProblems.map(([more, problem]): [object, string] => [
      { windows: [{ ...peak, ...more }] },
      problem,
    ]),
    [
      { windows: [peak, { ...peak, from: '11:59', to: '14:00' }] },
      'expected windows of which no two are open at once',
    ],
    [
      { windows: [peak, { ...peak, from: '22:00', to: '09:01' }] },
      'expected windows of which no two are open at once',
    ],
    [
      { windows: [peak, { ...peak, from: '14:00', to: '18:00', zone: 'UTC' }] },
      'expected windows in one time zone',
    ],
    [{ windows: [] }, 'windows: found [], expected a list of 1 to 50 maps'],
    [{ input_factor: 0.9 }, 'input_factor: found 0.9, expected a number from 1 to 4'],
    [{ image_tokens: 0.5 }, 'image_tokens: found 0.5, expected a whole number of 1 or more'],
    [{ max_output_tokens: 0 }, 'max_output_tokens: found 0, expected a whole number of 1 or more'],
  ])('is rejected with %j', (more, problem) => {
    expect(readCharge(row(more))).toEqual({ problem: expect.stringContaining(problem) as string });
  });

  it.each<[object, string | undefined]>([
    [
      { ...cache, tiers: [tier(5, { cached_input: 0.002, cache_write_1h: 0.1 })] },
      'tiers[0].cache_write: missing, so these tokens cost 0.02, the input price of the tier',
    ],
    [
      { max_output_tokens: 10, default_output_tokens: 11 },
      'default_output_tokens: 11 exceeds max_output_tokens, so 10 applies',
    ],
    [
      {
        type: 'times-billing',
        input: 0,
        tiers: [tier(5)],
        service_tiers: { flex: 0.5 },
        input_factor: 2,
        image_tokens: 9,
      },
      ['tiers', 'service_tiers', 'image_tokens', 'input_factor']
        .map((name) => `${name}: ignored, because the type is times-billing`)
        .join('; '),
    ],
    [{ output: undefined }, 'output: missing, so output tokens are free (set 0 if intended)'],
    [{ input: undefined }, 'input: missing, so input tokens are free (set 0 if intended)'],
    [{ output: 0 }, undefined],
    [{ service_tiers: { flex: '0.5', priority: 2, a_1: 0.000_001, 'on-demand': 100 } }, undefined],
  ])('is used with a warning: %j', (more, warning) => {
    expect(readCharge(row(more))).toMatchObject({ row: {}, ...(warning && { warning }) });
    if (warning === undefined) expect(readCharge(row(more))).not.toHaveProperty('warning');
  });
});

it('amounts have the same format in prices, grants, options and forms', () => {
  const readers: [string, (written: string) => unknown][] = [
    ['a price', (written) => rowOf(readCharge(row({ input: written })), 'input')],
    [
      'a grant',
      (written) => rowOf(readRow(GrantRow, { account: 'a', grant_id: 'g', amount: written }), 'amount'),
    ],
    ['an option', (written) => tryOrNothing(() => parseDecimalText(written))],
    ['a pair of prices', (written) => tryOrNothing(() => parsePricePair(`${written}/1`).input)],
    [
      'a field',
      (written) => (typeof parseTypedNumber(written) === 'number' ? parseTypedNumber(written) : undefined),
    ],
  ];
  for (const [name, read] of readers) {
    for (const written of ['1e-3', '25e-1', '0.018', '2', '1.50', '1E+2'])
      expect([name, written, read(written) !== undefined]).toEqual([name, written, true]);
    for (const written of ['0,018', '1_000', '.5', '5.', '0x10', '1e', '+1', '¥1', '1e999'])
      expect([name, written, read(written)]).toEqual([name, written, undefined]);
  }
});

describe('rules with dates', () => {
  const at = (publishedAt: string, ...charges: object[]): string[] =>
    compile(
      { channels: [channel()], charges },
      { publishedAt: Date.parse(publishedAt) / 1000 },
    ).results.flatMap(({ table, key, warning }) => (warning ? [`${table} ${key}: ${warning}`] : []));
  const dated = row({ id: 2, from: '2027-01-01' });

  it('shadow each other by id when they start at the same time, even before they do', () => {
    const warning = 'charges 3: models: rule 2 has a lower id and takes precedence for gpt-4o';
    expect(at('2026-01-01', row(), dated, { ...dated, id: 3 })).toEqual([warning]);
  });
});
