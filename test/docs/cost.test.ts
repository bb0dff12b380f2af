/** docs/cost.md says what the command says, and its arithmetic comes to the dollars beside it. */
import { describe, expect, it } from 'vitest';
import {
  prices,
  priceSources,
  regions,
  costReport,
  type Sum,
  perCall,
  ledgerWrites,
  reference,
  type Workload,
} from '../../shared/operate/cost.ts';
import { BillingRig, stream, yuan } from '../support/billing-rig.ts';
import { delta, done, finish, usage } from '../support/core-rig.ts';
import { runOps } from '../ops/run-ops.ts';
import { fencesOf, readPage } from './pages.ts';

const page = readPage('docs/cost.md');
/** Without line breaks. */
const prose = page.replaceAll(/\s+/g, ' ');
const runs = fencesOf('docs/cost.md')
  .filter(({ language }) => language === 'console')
  .map(({ code }) => {
    const [first = '', ...lines] = code.split('\n');
    return { words: first.replace('$ npx --no relay-ops ', '').split(' '), output: lines.join('\n') };
  });

const sums = (more: Partial<Workload> = {}) => costReport({ ...reference, ...more }).sums;
const tenMillion = { calls: 10_000_000, callsPerSecond: 10, edge: 'pro' } as const;
const slim = { memoryMegabytes: 128 };

/** The texts in the columns of the rows that begin so. */
function rowsOf(start: string): string[][] {
  const rows = page.split('\n').filter((line) => line.startsWith(`| ${start}`));
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((text) => text.trim()),
  );
}
const dollars = (text = ''): number => Number(text.replaceAll(/[*,]/g, ''));

/** Rows with arithmetic: name, dollars as written, dollars as they come out. */
const reckoned = page
  .split('\n')
  .map((line) => line.split('|').map((text) => text.trim()))
  .filter(([, , arithmetic = '']) => /^[\d(][\d.,()×/+−^ ]+$/.test(arithmetic) && /[×−+]/.test(arithmetic))
  .map(([, name = '', arithmetic = '', written]) => ({
    name,
    written: dollars(written),
    exact: valueOf(arithmetic),
  }));

/** Sums, products, quotients and powers of numbers, by a parser of its own. */
function valueOf(arithmetic: string): number {
  const tokens = arithmetic.replaceAll(',', '').match(/[\d.]+|[()×/+−^]/g) ?? [];
  const next = (...wanted: string[]) => (wanted.includes(tokens[0] ?? '') ? tokens.shift() : undefined);
  const factor = (): number => {
    const base = next('(') ? inBrackets() : Number(tokens.shift());
    return next('^') ? base ** factor() : base;
  };
  const inBrackets = (): number => {
    const inner = sum();
    expect(next(')')).toBe(')');
    return inner;
  };
  const product = (): number => {
    let value = factor();
    for (let sign = next('×', '/'); sign; sign = next('×', '/'))
      value = sign === '×' ? value * factor() : value / factor();
    return value;
  };
  const sum = (): number => {
    let value = product();
    for (let sign = next('+', '−'); sign; sign = next('+', '−'))
      value = sign === '+' ? value + product() : value - product();
    return value;
  };
  const value = sum();
  expect(tokens).toEqual([]);
  return value;
}

describe('docs/cost.md', () => {
  it.each(runs)('shows what $words prints', async ({ words, output }) => {
    expect(await runOps(words)).toEqual({ code: 0, errors: '', output });
  });

  it('has a report for the unit, for rest and for three customers', () => {
    expect(runs.map(({ words }) => words[0])).toEqual(Array.from({ length: 5 }, () => 'cost'));
  });

  it('compares a million calls by memory and by month', () => {
    const written = rowsOf('in a month of ').map(([, ...figures]) => figures.map(dollars));
    const of = (more: Partial<Workload>, kind: keyof Sum): number[] =>
      [more, { ...more, ...slim }].map((each) => Number(sums(each).perMillion[kind].toFixed(2)));
    expect(written).toEqual([
      of({}, 'billed'),
      of({}, 'list'),
      of(tenMillion, 'billed'),
      of(tenMillion, 'list'),
    ]);
  });

  it('says by how busy a stack is what its ledger takes', () => {
    const written = [0.01, 1, 10, 100].map((rate) => rowsOf(`${rate} `).at(0));
    const computed = [0.01, 1, 10, 100].map((callsPerSecond) =>
      ledgerWrites({ ...reference, callsPerSecond }),
    );
    expect(written.map((row) => Number(row?.[2]))).toEqual(computed.map((units) => Number(units.toFixed(1))));
    const [usd] = prices.dynamoDbWrites.byRegion['us-east-1'];
    expect(written.map((row) => row?.[3])).toEqual(computed.map((units) => (units * usd * 1e6).toFixed(2)));
  });

  it('says what rest costs', () => {
    const [rest, one] = [0, 1].map((channels) => sums({ calls: 0, channels }).idle);
    expect(prose).toContain(`a month costs ${rest?.billed.toFixed(2)} dollars as AWS bills it`);
    expect(prose).toContain(`and ${rest?.list.toFixed(2)} at list prices`);
    const { list, billed } = sums({ calls: 0, channels: 0, alarms: 0 }).idle;
    const ofAlarms = Number(rest?.list) - list;
    expect(prose).toContain(`and ${ofAlarms.toFixed(2)} the alarms`);
    expect(prose).toContain(`With \`"alarms": false\` it is ${billed.toFixed(2)} as billed`);
    expect(prose).toContain(`it is ${(billed + ofAlarms).toFixed(2)} where the ten alarms`);
    expect(prose).toContain(`which look at ${reference.alarms} metrics`);
    expect(prose).toContain(
      `Each channel's secret adds ${(Number(one?.list) - Number(rest?.list)).toFixed(2)}.`,
    );
  });

  it('says what a year of each customer costs: twelve of its months', async () => {
    const written = [...prose.matchAll(/\*\*([\d,]+) dollars a year\*\*/g)].map(([, text]) => dollars(text));
    const years = await Promise.all(
      runs.slice(2).map(async ({ words }) => {
        const { output } = await runOps([...words, '--json']);
        return (JSON.parse(output) as { sums: { year: Sum } }).sums.year.billed;
      }),
    );
    expect(written).toEqual(years.map(Math.round));
    const byTheByte = runs.at(-1)?.words.join(' ').replace('--plan business', '--web-acl').split(' ') ?? [];
    const { output } = await runOps([...byTheByte, '--json']);
    const { year } = (JSON.parse(output) as { sums: { year: Sum } }).sums;
    expect(prose).toContain(`it would be ${Math.round(year.billed).toLocaleString('en-US')}.`);
  });

  it('has an arithmetic that comes to the dollars beside it', () => {
    expect(reckoned.length).toBeGreaterThan(35);
    const wrong = reckoned.filter(({ written, exact }) => Math.abs(written - exact) > 0.0051);
    expect(wrong).toEqual([]);
  });

  it('checks a customer by hand, line by line', async () => {
    const { output } = await runOps([...(runs[3]?.words ?? []), '--json']);
    const report = JSON.parse(output) as ReturnType<typeof costReport>;
    const lines = [...report.traffic, ...report.idle].filter(({ list }) => list >= 0.005);
    const first = reckoned.findIndex(({ name }) => name === 'Lambda’s time' || name === "Lambda's time");
    const byHand = reckoned.slice(first).filter(({ name }) => !name.startsWith('free:'));
    expect(byHand.map(({ exact }) => exact.toFixed(2))).toEqual(lines.map(({ list }) => list.toFixed(2)));
    const [list, billed] = ['**list**', '**billed**'].map((name) => dollars(rowsOf(name).at(0)?.[2]));
    expect(list).toBeCloseTo(report.sums.month.list, 2);
    expect(billed).toBeCloseTo(report.sums.month.billed, 2);
    const free = reckoned.filter(({ name }) => name.startsWith('free:'));
    expect(free.reduce((total, { exact }) => total + exact, list ?? 0)).toBeCloseTo(billed ?? 0, 1);
  });
});

describe('the goals', () => {
  it('are met: a million reference streams are billed 50 dollars at 256 MB and 34 at 128 MB at most', () => {
    for (const month of [{}, tenMillion]) {
      expect(sums(month).perMillion.billed).toBeLessThanOrEqual(50);
      expect(sums({ ...month, ...slim }).perMillion.billed).toBeLessThanOrEqual(34);
    }
    // With a plan also at list prices.
    expect(sums(tenMillion).perMillion.list).toBeLessThanOrEqual(50);
    expect(sums({ ...tenMillion, ...slim }).perMillion.list).toBeLessThanOrEqual(34);
  });

  it('are met: a stack without a call is billed 3 dollars at most', () => {
    expect(sums({ calls: 0, channels: 0 }).idle.billed).toBeLessThanOrEqual(3);
  });
});

it('every price has a source with a date, in every region', () => {
  for (const { byRegion } of Object.values(prices))
    for (const region of regions) {
      const [usd, source] = byRegion[region];
      expect(usd).toBeGreaterThan(0);
      expect(priceSources[source].what.length).toBeGreaterThan(10);
      expect(priceSources[source].date).toMatch(/20\d\d|not (dated|found)/);
    }
});

it('a chunk of an answer has the bytes that are reckoned', async () => {
  const model = 'gpt-4o-mini';
  const steps = [...Array.from({ length: 500 }, () => delta(' word')), finish(), usage(4_003, 500), done];
  const rig = new BillingRig({ channels: [{ id: 'main', models: [model] }] }).upstream({ steps });
  const { text } = await rig.granted(1000n * yuan).call({ ...stream, model });
  const bytes = Buffer.byteLength(text) / 500;
  expect(bytes).toBeLessThanOrEqual(perCall.chunkBytes);
  expect(bytes).toBeGreaterThan(perCall.chunkBytes - 10);
});
