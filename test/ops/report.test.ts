/** The report of a week or month: exact figures from the rows, and a self-contained file. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSpending } from '../../shared/operate/customers/customer-list.ts';
import { viewReport, reportPeriod } from '../../shared/operate/report.ts';
import { accessFaults, openPage, startBrowser } from '../support/browser.ts';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'relay-report-'));
const file = path.join(folder, 'week.html');
const hostile = 'm<img src=//x.example onerror=alert(1)>';
/** Looks like a client's key; somebody used it as the name of a channel. */
const pastedKey = `sk-${'Pasted0'.repeat(7).slice(0, 48)}`;
let rig: LedgerRig;

beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.put('channels', { id: 'broken', endpoint: 'nowhere', models: ['m'], state: true });
  for (const account of ['acme', 'other', 'rich']) await rig.grant(account, account === 'rich' ? '500' : '6');
  const served = { charge: yuan('1.5'), prompt_tokens: 12, completion_tokens: 40, first_content_ms: 300 };
  const bought = { ...served, channel: 'openai', bought: yuan('0.5') };
  await rig.call('acme', idAt('2026-11-08T23:59:59Z', '6'), { ...bought, charge: yuan('0.25') });
  await rig.call('acme', idAt('2026-11-09T00:00:00Z', '1'), bought);
  await rig.call('acme', idAt('2026-11-15T23:59:59Z', '2'), bought);
  await rig.call('other', idAt('2026-11-10T10:00:00Z', '3'), {
    ...served,
    channel: pastedKey,
    first_content_ms: 90_000,
  });
  await rig.call(
    'rich',
    idAt('2026-11-10T10:00:00Z', '4'),
    { ...served, channel: pastedKey },
    { model: hostile },
  );
  await rig.call('rich', idAt('2026-11-11T10:00:00Z', '5'), { charge: 0n, kind: 'released', end: 'failed' });
  await rig.call('acme', idAt('2026-11-16T00:00:00Z', '7'), bought);
  const rescued = { ...served, charge: 0n, channel: 'openai', first_content_ms: 60_500 };
  const tried = '[["first_content_timeout",-1,60000,"ab","flaky",""],["",500,1500,"cd","",""]]';
  await rig.call('rich', idAt('2026-11-24T10:00:00Z', '8'), { ...rescued, tried });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await rig.stop();
});

interface Reported {
  whole: object;
  before: object;
  days: { day: string; calls: number }[];
  models: { model: string }[];
  channels: { channel: string; first_content_p95_ms: unknown }[];
  near_empty: object[];
  marks: object[];
}

async function reported(...words: string[]): Promise<Reported> {
  const { code, output, errors } = await rig.ops(['report', '--json', ...words]);
  expect({ code, errors }).toMatchObject({ code: 0 });
  return JSON.parse(output) as Reported;
}

describe('a report', () => {
  it('adds up only the calls of its days, and compares with the days before', async () => {
    const week = await reported('--week', '2026-11-12');
    expect(week.whole).toMatchObject({
      calls: 5,
      failures: 1,
      charged: '6',
      bought: '1',
      bought_calls: 2,
      margin: '2',
    });
    expect(week.before).toMatchObject({ from: '2026-11-02', to: '2026-11-08', calls: 1, charged: '0.25' });
    expect(week.days.map(({ day, calls }) => [day.slice(8), calls])).toEqual([
      ['09', 1],
      ['10', 2],
      ['11', 1],
      ['12', 0],
      ['13', 0],
      ['14', 0],
      ['15', 1],
    ]);
    expect(week.models.map(({ model }) => model)).toEqual(['gpt-4o', hostile]);
    expect(week.channels.map((each) => [each.channel, each.first_content_p95_ms])).toEqual([
      ['sk-Past...sted', expect.closeTo(90_000, -4)],
      ['openai', expect.closeTo(300, -2)],
    ]);
    expect(week.marks).toMatchObject([{ table: 'channels', key: 'broken' }]);
    const month = await reported('--month', '2026-11');
    expect(month.whole).toMatchObject({ calls: 8, charged: '7.75' });
  });

  it('counts a failure before a failover for the channel that failed, without its time for the one that answered', async () => {
    const week = await reported('--week', '2026-11-24');
    expect(week.whole).toMatchObject({ calls: 1, failures: 0 });
    expect(week.channels).toMatchObject([
      {
        channel: 'openai',
        attempts: 1,
        failed_attempts: 0,
        first_content_p95_ms: expect.closeTo(500, -2) as number,
        tokens_per_second: 40,
      },
      { channel: 'flaky', attempts: 1, failed_attempts: 1, failures: { timeout: 1 }, calls: 0 },
    ]);
    const { output } = await rig.ops(['report', '--week', '2026-11-24']);
    expect(output).toMatch(/^flaky +1 +100\.0 %/m);
  });

  it('lists only the accounts that will run out at their current spending', async () => {
    const ports = await rig.ports();
    const at = (iso: string) => ({ ...ports, clock: { ...ports.clock, now: () => Date.parse(iso) } });
    const { nearEmpty } = await viewReport(at('2026-11-16T12:00:00Z'), {});
    // Its first call ever was on 8 November.
    const lasts = expect.closeTo((1.25 / 4.75) * 8.5, 5) as number;
    const perDay = (yuan('4.75') * 10n) / 85n;
    expect(nearEmpty).toEqual([{ account: 'acme', available: yuan('1.25'), perDay, daysLeft: lasts }]);
    const dry = await listSpending(at('2026-11-16T12:00:00Z'), { order: 'dry', limit: 1 });
    expect(dry.customers).toMatchObject([{ account: 'acme', daysLeft: nearEmpty[0]?.daysLeft }]);
    const next = await viewReport(at('2026-12-07T00:00:00Z'), {});
    expect(next.nearEmpty).toEqual([]);
  });

  it('finds the days of weeks, of months, and at the end of a year', () => {
    const nowMs = Date.parse('2026-11-22T12:00:00Z');
    expect(reportPeriod(nowMs, {})).toMatchObject({ from: '2026-11-16', to: '2026-11-22', isRunning: true });
    expect(reportPeriod(nowMs, { month: '2026-11' })).toMatchObject({
      come: 22,
      before: { from: '2026-10-01', to: '2026-10-22' },
    });
    expect(reportPeriod(Date.parse('2026-03-31T12:00:00Z'), { month: '2026-03' })).toMatchObject({
      come: 31,
      before: { from: '2026-02-01', to: '2026-02-28' },
    });
    expect(reportPeriod(nowMs, { month: '2026-01' })).toMatchObject({
      to: '2026-01-31',
      before: { from: '2025-12-01', to: '2025-12-31' },
      isRunning: false,
    });
    expect(reportPeriod(nowMs, { month: '2024-02' }).days).toHaveLength(29);
    expect(reportPeriod(nowMs, { week: '2026-01-01' })).toMatchObject({
      from: '2025-12-29',
      to: '2026-01-04',
    });
    for (const wrong of [{ month: '2026-13' }, { week: '2026-02-30' }, { month: '2027-01' }, { week: 'now' }])
      expect(() => reportPeriod(nowMs, wrong)).toThrow(/use a|is in the future/);
  });

  it('reads no ledger rows, however many there are', async () => {
    const ports = await rig.ports();
    const ledger = {
      ...ports.ledger,
      ledger: () => {
        throw new Error('the ledger was read');
      },
    };
    await viewReport({ ...ports, ledger }, { month: '2026-11' });
    // A month is eight queries, and a report compares two.
    expect(ports.traffic().requests).toBeLessThan(24);
  });
});

describe('the text of a report', () => {
  it('shows days, models and channels with their margins, and no name that could be a key', async () => {
    const { code, output } = await rig.ops('report --week 2026-11-12');
    expect(code).toBe(0);
    expect(output).not.toContain(pastedKey);
    const lines = output.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, ' '));
    expect(lines).toEqual(
      expect.arrayContaining([
        '5 calls, 20.0 % failed, ¥6.00 charged (previous period: ¥0.25), margin ¥2.00 on the 40.0 % of calls with known cost',
        'DAY CALLS FAILED CHARGED BOUGHT MARGIN',
        '2026-11-10 2 0.0 % 3.00 - -',
        `${hostile} 1 0.0 % 1.50 - -`,
        'CHANNEL ATTEMPTS FAILED FIRST CONTENT P50 P95 TOKENS/S CHARGED BOUGHT MARGIN',
        'openai 2 0.0 % 285 ms 285 ms - 3.00 1.00 2.00',
      ]),
    );
    expect(output).toMatch(/sk-Past\.\.\.sted .* 85\.7 s/);
    expect(output).toContain('channels broken: ');
  });

  it('reports an unknown margin if no channel has costs', async () => {
    expect((await rig.ops('report --month 2026-01')).output).toContain(
      'charged (previous period: ¥0.00), margin unknown (no call has a known cost)\n',
    );
  });
});

describe('the file of a report', () => {
  it('covers the same month as the CSV of the same call', async () => {
    expect((await rig.ops(`report --csv --html ${file}`)).code).toBe(0);
    const { days, come } = reportPeriod(Date.now(), { month: new Date().toISOString().slice(0, 7) });
    const shown = readFileSync(file, 'utf8').match(/(?<=<th[^>]*>)\d{4}-\d\d-\d\d(?=<)/g);
    expect([...new Set(shown)].toSorted()).toEqual(days.slice(0, come));
  });

  it('shows its plots without network or script, in light and dark mode, and escapes markup and hides keys', async () => {
    const { code, errors } = await rig.ops(`report --week 2026-11-12 --html ${file}`);
    expect({ code, errors }).toMatchObject({ code: 0, errors: expect.stringContaining(file) as string });
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain(pastedKey);
    expect(text).not.toMatch(/<script|<link|<img|@import|url\(|src=(?!\/\/x)/);
    const browser = await startBrowser();
    try {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page, complaints } = await openPage(browser, { colorScheme, offline: true });
        const asked: string[] = [];
        page.on('request', (request) => asked.push(request.url()));
        await page.goto(`file://${file}`);
        expect(asked).toEqual([`file://${file}`]);
        expect(await page.locator('svg rect.third').count()).toBe(7);
        expect(await page.getByRole('rowheader', { name: hostile }).count()).toBe(1);
        expect(await page.locator('p').first().innerText()).toContain(
          '¥6.00 charged (previous period: ¥0.25',
        );
        expect(await accessFaults(page)).toEqual([]);
        expect(complaints).toEqual([]);
        await page.context().close();
      }
      const { page } = await openPage(browser, {
        colorScheme: 'dark',
        viewport: { width: 360, height: 700 },
      });
      await page.goto(`file://${file}`);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      await page.emulateMedia({ media: 'print' });
      const back = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(back).toBe('rgb(255, 255, 255)');
    } finally {
      await browser.close();
    }
  });
});
