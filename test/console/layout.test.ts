import { describe, expect, it } from 'vitest';
import { parseYuan } from '../../shared/billing/amount.ts';
import { short, yuan, yuanText, span, when, written } from '../../infra/ops/console/layout/figures.ts';
import { errorsByField } from '../../infra/ops/console/layout/form.ts';
import { plot } from '../../infra/ops/console/layout/plot.ts';
import { Proposals, type Proposal } from '../../infra/ops/console/visit/visit.ts';
import { restingPlaces } from '../../shared/operate/channels/list-channels.ts';
import { firstContentWithin } from '../../shared/operate/report.ts';
import { spanUntil, trafficPoints } from '../../shared/operate/overview.ts';
import { healthKeysOf } from '../../shared/relay/health/health-recorder.ts';
import { candidatesOf } from '../../shared/relay/call/serving-channels.ts';
import type { ChannelRow } from '../../shared/config/rows/channel-row.ts';

/** Markup that waits for nothing is a text already. */
const textOf = (markup: unknown): string => (markup as { toString(): string }).toString();
const shown = (written: string): string => yuanText(parseYuan(written) ?? 0n);

describe('figures of pages', () => {
  it.each([
    ['0', '0.00'],
    ['1234567.891', '1,234,567.89'],
    ['-5.5', '−5.50'],
    ['0.005', '0.005'],
    ['0.000000001', '0.000000001'],
    ['0.0014', '0.0014'],
    ['0.01', '0.01'],
    ['999.995', '1,000.00'],
    ['-0.004', '−0.004'],
  ])('show %s yuan as %s: two decimals, or what a small amount needs to be seen', (amount, words) => {
    expect(shown(amount)).toBe(words);
  });

  it('have the exact amount and time as their title', () => {
    expect(textOf(yuan(parseYuan('0.123456789') ?? 0n))).toContain('title="0.123456789 yuan"');
    expect(textOf(when(0, 3_600_000 * 5))).toMatch(/title="1970-01-01T00:00:00Z"[^>]*>5 h ago</);
    expect(textOf(when(86_400_000 * 3, 0))).toContain('in 3 days');
    expect([span(1000), span(100_000), span(86_400_000 * 1.6)]).toEqual(['1 s', '2 min', '2 days']);
    expect([short(9999), short(12_345), short(1_200_000_000)]).toEqual(['9,999', '12.3K', '1.20G']);
  });

  it('name who wrote a row by the end of an ARN, and nobody where a row does not say', () => {
    const row = { _by: 'arn:aws:sts::1:assumed-role/relay-operator/li', _at: '1970-01-01T00:00:00Z' };
    expect(textOf(written(row, 60_000 * 2))).toMatch(
      /2 min ago<\/time> by <span title="arn:[^"]+">relay-operator\/li</,
    );
    expect(written({}, 0)).toBeUndefined();
  });
});

describe('a message of a schema', () => {
  const fields = [{ name: 'priority' }, { name: 'weight' }, { name: 'expires_at' }];
  it('stands at the fields that it names; what names none belongs to the form', () => {
    const errors = errorsByField(
      'nothing was written: priority: found x, wanted a whole number; weight: found -1, wanted 0 or more; the rest',
      fields,
    );
    expect([...errors]).toEqual([
      ['priority', 'found x, wanted a whole number'],
      ['weight', 'found -1, wanted 0 or more'],
    ]);
    expect(errorsByField('--expires-at soon: wanted a time', fields).get('expires_at')).toBe(
      'soon: wanted a time',
    );
    expect(errorsByField('nobody knows', fields).size).toBe(0);
  });
});

it('keeps the data of a plot inside its block, whatever a model is called', () => {
  const label = '</script><script>alert(1)</script><!--';
  const markup = textOf(
    plot({ id: 'a', title: label, unit: '', times: [1], series: [{ label, values: [1] }] }),
  );
  expect(markup.match(/<script/g)).toHaveLength(1);
  const json = /<script type="application\/json" id="a">([^<]*)<\/script>/.exec(markup)?.[1] ?? '';
  expect(JSON.parse(json)).toMatchObject({ title: label, series: [{ label, values: [1] }] });
});

describe('what happened in the last hours', () => {
  it('is in points without a gap, and no minute is lost', () => {
    const nowMs = Date.parse('2026-11-22T09:41:30Z');
    const minutes = [0, 1, 59].map((back) => ({
      startMs: Date.parse('2026-11-22T09:41:00Z') - back * 60_000,
      figures: { counts: { calls: 1 + back }, amounts: {} },
    }));
    const hour = trafficPoints(minutes, spanUntil(nowMs, 1));
    expect(hour).toHaveLength(60);
    expect(hour.at(-1)).toMatchObject({
      startMs: Date.parse('2026-11-22T09:41:00Z'),
      figures: { counts: { calls: 1 } },
    });
    expect(hour[0]?.figures.counts.calls).toBe(60);
    const day = trafficPoints(minutes, spanUntil(nowMs, 24));
    expect(day).toHaveLength(96);
    expect(day.reduce((sum, { figures }) => sum + (figures.counts.calls ?? 0), 0)).toBe(63);
  });

  it('had content within the bound of the bucket in which the share is reached', () => {
    const counts = { first_content_500: 50, first_content_2000: 45, first_content_more: 5 };
    const within = (share: number) => firstContentWithin({ counts, amounts: {} }, share);
    expect([within(0.5), within(0.95), within(1)]).toEqual([500, 2000, 128_000]);
    expect(firstContentWithin({ counts: {}, amounts: {} }, 0.5)).toBeUndefined();
  });
});

it('finds what the relay knows against a channel by the relay’s own keys', () => {
  const channel = {
    id: 'a',
    secret: ['ssm:/x', 'ssm:/y'],
    models: ['m', 'n'],
    weight: 1,
  } as unknown as ChannelRow;
  const [place = 0, limit = 0] = healthKeysOf(candidatesOf(channel, 'n')[1]!);
  const entries = new Map([
    [place, { kind: 'credentials' as const, untilMs: 5000 }],
    [limit, { kind: 'rate_limit' as const, untilMs: 9000 }],
    [12_345, { kind: 'failing' as const, untilMs: 9000 }],
  ]);
  expect(restingPlaces(channel, entries, 1000)).toEqual([
    { kind: 'rate_limit', atMs: 9000, model: 'n' },
    { kind: 'credentials', atMs: 5000, model: undefined },
  ]);
  expect(restingPlaces(channel, entries, 1_000_000)).toEqual([]);
});

describe('an action between its form and its end', () => {
  const identity = { name: 'li', formToken: 'a' };
  const visit = { identity, fields: {}, path: 'charges/1' };
  const proposal = (carryOut: Proposal['carryOut']): Proposal => ({
    title: '',
    back: '',
    effect: [],
    questions: [],
    verb: '',
    carryOut,
  });
  const make = (now = () => 0) => {
    let id = 0;
    return new Proposals({ newId: () => `id${(id += 1)}`, now });
  };

  it('is carried out once, however often it is confirmed', async () => {
    const proposals = make();
    let times = 0;
    const id = proposals.add(
      visit,
      proposal(async () => ({ lines: [`${(times += 1)}`] })),
    );
    const kept = proposals.find(identity, id)!;
    expect([proposals.start(kept), proposals.start(kept)]).toEqual([true, true]);
    await kept.run?.done;
    expect([times, kept.run?.ended]).toEqual([1, { outcome: { lines: ['1'] } }]);
  });

  it('shows its secret once', async () => {
    const proposals = make();
    const id = proposals.add(
      visit,
      proposal(async () => ({ lines: [], secret: { name: 'key', value: 'sk-1' } })),
    );
    const kept = proposals.find(identity, id)!;
    proposals.start(kept);
    await kept.run?.done;
    expect([proposals.takeSecret(kept)?.value, proposals.takeSecret(kept)]).toEqual(['sk-1', undefined]);
    expect(JSON.stringify(kept.run)).not.toContain('sk-1');
  });

  it('is forgotten after half an hour, and no more than a hundred wait', () => {
    let ms = 0;
    const proposals = make(() => ms);
    const first = proposals.add(
      visit,
      proposal(async () => ({ lines: [] })),
    );
    ms = 31 * 60_000;
    const second = proposals.add(
      visit,
      proposal(async () => ({ lines: [] })),
    );
    expect([proposals.find(identity, first), proposals.find(identity, second)?.id]).toEqual([
      undefined,
      second,
    ]);
    for (let count = 0; count < 120; count += 1)
      proposals.add(
        visit,
        proposal(async () => ({ lines: [] })),
      );
    expect(proposals.find(identity, second)).toBeUndefined();
  });

  it('waits while four others run', () => {
    const proposals = make();
    const start = () => {
      const id = proposals.add(
        visit,
        proposal(() => new Promise(() => undefined)),
      );
      return proposals.start(proposals.find(identity, id)!);
    };
    expect([start(), start(), start(), start(), start()]).toEqual([true, true, true, true, false]);
  });
});
