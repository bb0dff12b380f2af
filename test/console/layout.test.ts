import { describe, expect, it } from 'vitest';
import { parseYuan } from '../../shared/billing/money.ts';
import {
  formatShort,
  renderYuan,
  formatSpan,
  renderAge,
  renderLastChange,
} from '../../infra/ops/console/layout/figures.ts';
import { assignErrors } from '../../infra/ops/console/layout/form.ts';
import { renderAttention } from '../../infra/ops/console/pages/attention.ts';
import { renderPlot } from '../../infra/ops/console/layout/plot.ts';
import { createMemoryForms } from '../../infra/ops/console/visit/visit.ts';
import { listCooldowns } from '../../shared/operate/channels/list-channels.ts';
import { planTimeSpan, sumTraffic } from '../../shared/operate/overview.ts';
import { healthKeysOf } from '../../shared/relay/health/health-recorder.ts';
import { candidatesOf } from '../../shared/relay/call/serving-channels.ts';
import type { ChannelRow } from '../../shared/config/rows/channel-row.ts';

/** Markup without pending parts is plain text. */
const textOf = (markup: unknown): string => (markup as { toString(): string }).toString();

describe('figures of pages', () => {
  it.each([
    ['0', '¥0.00'],
    ['1234567.891', '¥1,234,567.89', '¥1,234,567.891'],
    ['-5.5', '−¥5.50'],
    ['0.000000001', '¥0.000000001'],
    ['0.0014', '¥0.0014'],
    ['0.01', '¥0.01'],
    ['999.995', '¥1,000.00', '¥999.995'],
    ['-0.004', '−¥0.004'],
  ])(
    'show %s yuan as %s: short, but with enough digits for a small amount, and in full as title',
    (amount, words, exact = words) => {
      const text = textOf(renderYuan(parseYuan(amount) ?? 0n));
      expect(text.replaceAll(/\s/g, '')).toContain(`>${words}<`);
      expect(text).toContain(`title="${exact}"`);
    },
  );

  it('shorten counts, times and the author of a row', () => {
    expect([9999, 12_345, 1_200_000_000, 0.012_345].map(formatShort)).toEqual([
      '9,999',
      '12.3K',
      '1.2G',
      '0.0123',
    ]);
    expect([formatSpan(1000), formatSpan(100_000), formatSpan(86_400_000 * 1.6)]).toEqual([
      '1 s',
      '2 min',
      '2 days',
    ]);
    expect(textOf(renderAge(0, 3_600_000 * 5))).toMatch(/title="1970-01-01T00:00:00Z"[^>]*>5 h ago</);
    expect(textOf(renderAge(86_400_000 * 3, 0))).toContain('in 3 days');
    const row = { _by: 'arn:aws:sts::1:assumed-role/relay-operator/li', _at: '1970-01-01T00:00:00Z' };
    expect(textOf(renderLastChange(row, 60_000 * 2))).toMatch(
      /2 min ago<\/time> by <span title="arn:[^"]+">relay-operator\/li</,
    );
    expect(renderLastChange({}, 0)).toBeUndefined();
  });
});

it('shows an error at the field that its message names, or else at the form', () => {
  const fields = [{ name: 'priority' }, { name: 'weight' }, { name: 'expires_at' }];
  const message =
    'nothing was written: priority: found x, expected a whole number; weight: found -1, expected 0 or more; the rest';
  expect([...assignErrors(message, fields)]).toEqual([
    ['priority', 'found x, expected a whole number'],
    ['weight', 'found -1, expected 0 or more'],
  ]);
  expect([...assignErrors('--expires-at soon: use a time', fields)]).toEqual([
    ['expires_at', 'soon: use a time'],
  ]);
  expect([...assignErrors('invalid --weight x: use a number', fields)]).toEqual([
    ['weight', 'invalid weight x: use a number'],
  ]);
  expect(assignErrors('nobody knows', fields).size).toBe(0);
});

it('draws bars and lines only from known values, and model names as text', () => {
  const name = '</title><script>alert(1)</script>';
  const values = [1, null, 3];
  const markup = textOf(
    renderPlot({
      title: name,
      unit: '',
      points: ['2026-11-22 23:59', '2026-11-23 00:00', '2026-11-23 00:01'],
      series: [
        { name, tone: 'first', values },
        { name: 'slow', tone: 'second', isLine: true, values },
      ],
    }),
  );
  expect(markup).not.toContain('<script');
  expect(markup.match(/class="first"\s+x=/g)).toHaveLength(3);
  expect(/points="([^"]*)"/.exec(markup)?.[1]?.split(' ')).toHaveLength(2);
  expect([...markup.matchAll(/>(11-23|\d\d:\d\d)</g)].map(([, label]) => label)).toEqual([
    '23:59',
    '11-23',
    '00:01',
  ]);
});

describe('events of the last hours', () => {
  it('are points without a gap, and no minute is lost', () => {
    const nowMs = Date.parse('2026-11-22T09:41:30Z');
    const lastMs = Date.parse('2026-11-22T09:41:00Z');
    const minutes = [0, 1, 59].map((back) => ({
      startMs: lastMs - back * 60_000,
      figures: { counts: { calls: 1 + back }, amounts: {} },
    }));
    const callsIn = (hours: number): number[] =>
      sumTraffic(minutes, planTimeSpan(nowMs, hours)).map(({ figures }) => figures.counts.calls ?? 0);
    const hour = callsIn(1);
    expect([hour.length, hour[0], hour.at(-1)]).toEqual([60, 60, 1]);
    const day = callsIn(24);
    expect([day.length, day.reduce((sum, calls) => sum + calls, 0)]).toEqual([96, 63]);
  });
});

it('finds the health entries of a channel by the relay’s own keys', () => {
  const known = { id: 'a', secret: ['ssm:/x', 'ssm:/y'], models: ['m', 'n'], weight: 1 };
  const channel = known as unknown as ChannelRow;
  const [place = 0, limit = 0] = healthKeysOf(candidatesOf(channel, 'n')[1]!);
  const entries = new Map([
    [place, { kind: 'credentials' as const, untilMs: 5000 }],
    [limit, { kind: 'rate_limit' as const, untilMs: 9000 }],
    [12_345, { kind: 'failing' as const, untilMs: 9000 }],
  ]);
  expect(listCooldowns(channel, entries, 1000)).toEqual([
    { kind: 'rate_limit', atMs: 9000, model: 'n' },
    { kind: 'credentials', atMs: 5000, model: undefined },
  ]);
  expect(listCooldowns(channel, entries, 1_000_000)).toEqual([]);
});

describe('a form that waits for its confirmation', () => {
  let ms = 0;
  let id = 0;
  const forms = createMemoryForms({
    clock: { now: () => ms, sleep: async () => undefined },
    random: { secretKey: () => '', hex: () => `id${(id += 1)}` },
  });
  const keep = () => forms.keep({ owner: 'a', text: '{}' });

  it('is accepted once, only from its owner', async () => {
    const kept = await keep();
    expect(await forms.take('b', kept)).toBe(false);
    expect([await forms.take('a', kept), await forms.take('a', kept)]).toEqual([true, false]);
  });

  it('expires after half an hour, and at most a hundred wait', async () => {
    const first = await keep();
    ms = 31 * 60_000;
    const second = await keep();
    expect([await forms.read('a', first), await forms.read('a', second)]).toEqual([undefined, '{}']);
    for (let count = 0; count < 120; count += 1) await keep();
    expect(await forms.read('a', second)).toBeUndefined();
  });
});

it('the overview lists channels with a rejected secret, however few attempts fail', () => {
  const rejected = { kind: 'credentials' as const, atMs: 5000, model: undefined };
  const channel = { state: 'on' as const, secret: ['env:ONE', 'env:TWO', 'env:THREE'], rests: [rejected] };
  const channels = [
    { ...channel, id: 'main' },
    { ...channel, id: 'off', state: 'off' as const },
    { ...channel, id: 'limited', rests: [{ ...rejected, kind: 'rate_limit' as const }] },
  ];
  const shown = renderAttention(
    { marks: [], channels, findings: [] },
    { day: '2026-11-29', losing: [], failing: [] },
  );
  const text = textOf(shown)
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  expect(text).toBe('Rejected secret or unpaid account (1): main');
});
