/** Seven channels, of which two fail behind failover, one stalls, one is slow and one loses money: console and command line report each. */
import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createChannelHours } from '../../shared/adapters/dynamodb/alerts/channel-hours.ts';
import { addToDaily } from '../../shared/adapters/dynamodb/daily-sums.ts';
import { formatAttempts, hashSecret, type CallAttempt } from '../../shared/billing/attempts.ts';
import { sumDaily } from '../../shared/billing/daily-figures.ts';
import type { CloseRow } from '../../shared/billing/ledger-row.ts';
import { viewChannels } from '../../shared/operate/channels/list-channels.ts';
import { requestSteps } from '../../shared/operate/requests/find-request.ts';
import { createChannelWatch } from '../../shared/relay/alerts/channel-watch.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { isoTime } from '../../shared/wire/iso-time.ts';
import { runOps } from '../ops/run-ops.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { enter, startConsoleRig, tokenIn, type ConsoleRig, type Visitor } from './console-rig.ts';
import { put } from './large-relay.ts';

const names = ['main', 'backup', 'slow', 'stalls', 'loses', 'fine'];
/** Too few attempts for a mark. The last ones were yesterday. */
const quiet = 'quiet';
const secrets = ['env:ONE', 'env:TWO'];
const dayMs = 86_400_000;
const nowMs = Date.now();
let rig: ConsoleRig;
let visitor: Visitor;

const good = (channel: string, more: Partial<CallAttempt> = {}): CallAttempt => ({
  channel,
  model: 'm',
  secret: hashSecret('env:ONE'),
  outcome: 'answered',
  contentMs: 500,
  endMs: 2500,
  ...more,
});
const bad = (channel: string, outcome: string): CallAttempt =>
  good(channel, { outcome, contentMs: undefined, endMs: 3000, secret: hashSecret('env:TWO') });

let count = 0;
function rowOf(atMs: number, tried: CallAttempt[]): CloseRow {
  const channel = tried.at(-1)?.channel ?? '';
  count += 1;
  return {
    account: 'acme',
    id: timeText(atMs).padEnd(26, '0').slice(0, 20) + String(count).padStart(6, '0'),
    at: isoTime(atMs),
    kind: 'settled',
    model: 'm',
    upstream_model: 'm',
    channel,
    key: 'k',
    charge: 10_000_000n,
    reserved: 0n,
    bought: channel === 'loses' ? 30_000_000n : channel === 'fine' ? undefined : 4_000_000n,
    prompt_tokens: 10,
    completion_tokens: 40,
    end: 'completed',
    price: '',
    tried: formatAttempts(tried, { channel, model: 'm' }),
  };
}

beforeAll(async () => {
  rig = await startConsoleRig();
  const endpoint = 'https://api.example.com/v1';
  await put(
    rig.client,
    'channels',
    [...names, quiet].map((id) => ({ id, endpoint, models: ['m'], secret: secrets, state: true })),
  );
  const days = [1, 2, 3, 4, 5, 6, 7].map((back) => nowMs - back * dayMs);
  const usual = days.flatMap((ms) =>
    names.flatMap((name) => Array.from({ length: 30 }, () => rowOf(ms, [good(name)]))),
  );
  const now = Array.from({ length: 40 }, () => [
    rowOf(nowMs, [bad('main', 'upstream_status_503'), good('backup')]),
    rowOf(nowMs, [bad('stalls', 'upstream_first_content_timeout'), good('fine')]),
    rowOf(nowMs, [good('slow', { contentMs: 6000, endMs: 9000 })]),
    rowOf(nowMs, [good('loses')]),
  ]).flat();
  const rescued = Array.from({ length: 6 }, () =>
    rowOf(nowMs - dayMs, [bad(quiet, 'upstream_status_503'), good('fine')]),
  );
  const hostile = { ...rowOf(nowMs, [good('fine')]), account: '=1+1' };
  for (const sum of sumDaily([...usual, ...now, ...rescued, hostile]))
    await rig.client.send(new UpdateItemCommand(addToDaily('relay', sum)));
  await createChannelWatch({
    clock: { now: () => nowMs },
    ids: { next: () => 'n1' },
    log: undefined as never,
    marks: { marks: async () => new Map(), raise: async () => true },
    hours: createChannelHours(tablesOn(rig.client), 'relay'),
  })();
  visitor = await enter(await rig.serve());
});
afterAll(async () => rig.stop());

const shown = async (path: string): Promise<string> =>
  (await visitor.page(path)).replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

it('the overview lists them first', async () => {
  const page = await shown('');
  const marks = page.slice(page.indexOf('Lost money'), page.indexOf('Models without a price'));
  expect(marks).toMatch(/^Lost money today \(UTC\) \(1\): loses −¥0\.80 /);
  expect(marks).toMatch(
    /Failing \(2\): main 100\.0% of attempts fail, usually 0\.0%; stalls .* Slower than last week \(1\): slow 6\.0s to first content, usually 0\.50s/,
  );
  expect(marks.match(/loses/g)).toHaveLength(1);
  const [, path = ''] = /href="([^"]+)">Lost money/.exec(await visitor.page('')) ?? [];
  const today = await shown(path.replaceAll('&amp;', '&'));
  const title = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(nowMs);
  expect(today).toContain(`${title}, until now (UTC)`);
  expect(today).toMatch(/By model By channel [^B]*loses .*−¥0\.80/);
  expect(marks).not.toMatch(/backup|fine/);
});

it('margins of a day link to the day before and to the CSV of its month, and name an invalid day', async () => {
  const page = await visitor.page('margins?by=channel&day=2026-10-01');
  expect(page).toContain('day=2026-09-30');
  expect(page).toMatch(/value="2026-10"[^]*Download CSV of the month/);
  expect(await shown('margins?day=2026-10-32')).toContain('--day: use a day such as 2026-11-18');
});

it('a channel whose few attempts all failed is shown as failing everywhere, also on the next day', async () => {
  const page = await shown('');
  expect(page).toMatch(/Failing, but failover still answers \(1\): quiet 100 % of 6 attempts/);
  expect(page).toMatch(/Channels 4 of 7 3 failing/);
  expect(page).toMatch(/quiet failing 0 /);
  expect(await shown('channels')).toMatch(/quiet failing 0 .* 100\.0 %/);
  expect(await shown('channels/quiet')).toMatch(/State failing/);
});

it('the list and the page of a channel show how often it fails, and with which secret', async () => {
  const list = await shown('channels');
  expect(list).toMatch(/main failing 0 .* 57\.1 %/);
  expect(list).toMatch(/loses ready .*−¥1\.40/);
  const page = await shown('channels/main');
  expect(page).toMatch(/Worse than last week: failing/);
  expect(page).toMatch(/env:ONE 30 0\.0 % .*env:TWO 40 100\.0 %/);
  expect(await shown('channels/backup')).not.toContain('Differs');
});

it('the page of a call that failed over shows which attempt failed where, also without its log line', () => {
  const steps = requestSteps(rowOf(nowMs, [bad('main', 'upstream_status_503'), good('backup')]));
  const told = steps.filter(([what]) => what === 'failed' || what === 'served').map(([, words]) => words);
  expect(told).toEqual(['channel main, status_503 after 3000 ms', 'by channel backup, as model m']);
});

it('margins start with losses, and report unknown costs once', async () => {
  const page = await shown('margins?by=channel');
  expect(page).toMatch(/Cost and margin leave out \d+\.\d % of the calls/);
  expect(page.match(/leave out/g)).toHaveLength(1);
  expect(page).toMatch(/Margin of charges loses /i);
  expect(await shown('margins?by=model')).toMatch(/ m \d/);
  expect(await shown('margins?by=customer')).toMatch(/ acme \d/);
  expect(rig.faults).toEqual([]);
});

it('margins of a month download as one CSV, equal to the output of the command', async () => {
  const month = isoTime(nowMs).slice(0, 7);
  const form_token = tokenIn(await visitor.page('margins'));
  const text = await (await visitor.post('margins-csv', { form_token, month })).text();
  const variables = { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint };
  expect((await runOps(['report', '--csv'], variables)).output).toBe(text);
  const rows: Record<string, string>[] = parse(text, { columns: true });
  const namesBy = (by: string) => rows.flatMap((row) => (row['by'] === by ? [row['name']] : []));
  expect(namesBy('model')).toEqual(['m']);
  expect(namesBy('channel').slice(0, 1)).toEqual(['loses']);
  expect(namesBy('customer')).toEqual(['acme', "'=1+1"]);
  const sums = Map.groupBy(rows, ({ by }) => by);
  const calls = [...sums.values()].map((all) => all.reduce((sum, row) => sum + Number(row['calls']), 0));
  expect(new Set(calls).size).toBe(1);
  const bodyOf = async (path: string) => (await shown(path)).replace(/DynamoDB: .*/, '');
  for (const by of ['model', 'channel', 'customer'])
    expect(await bodyOf(`margins?by=${by}`)).toBe(await bodyOf(`margins?by=${by}&month=${month}`));
});

it('the command line reports the same', async () => {
  const variables = { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint };
  const { output, errors } = await runOps(['channel', 'list'], variables);
  expect(errors).toContain('main: failing: 100.0% of attempts fail');
  expect(errors).toContain('slow: slower');
  expect(output).toMatch(/^main .* 57\.1 % /m);
  const report = JSON.parse((await runOps(['report', '--json'], variables)).output) as {
    channels: { channel: string; failed_attempts: number; failures: object; margin: string | null }[];
  };
  const of = (name: string) => report.channels.find(({ channel }) => channel === name);
  expect(of('main')).toMatchObject({ failed_attempts: 40, failures: { server: 40 } });
  expect(of('stalls')).toMatchObject({ failed_attempts: 40, failures: { timeout: 40 } });
  expect(Number(of('loses')?.margin)).toBeLessThan(0);
});

it('the marks of channels with the longest ids fit into their item, and can be read back', async () => {
  const longest = (at: number): string => `${at}${'频'.repeat(680)}`;
  const marks = Array.from({ length: 600 }, (_, at) => ({
    channel: longest(at),
    mark: 'failing' as const,
    model: 'm'.repeat(128),
    now: 1,
    usual: 0,
  }));
  await createChannelHours(tablesOn(rig.client), 'relay').keep(marks, nowMs);
  const kept = await rig.ports.pages.health();
  expect(kept.marks.length).toBeGreaterThan(100);
  await put(rig.client, 'channels', [
    { id: longest(7), endpoint: 'https://api.example.com/v1', models: ['m'], state: true },
  ]);
  const { channels } = await viewChannels(rig.ports);
  expect(channels.find(({ id }) => id === longest(7))?.marks).toHaveLength(1);
});
