/**
 * The layout of every page in a real browser: at the widths of a phone, a laptop and a large screen, in light and dark. With
 * RELAY_PICTURES set to a folder, it saves a picture of each.
 */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallLog, LoggedLine } from '../../shared/operate/operator-ports.ts';
import { accessFaults, openPage, startBrowser } from '../support/browser.ts';
import { startConsoleRig, type ConsoleRig } from './console-rig.ts';
import {
  accountAt,
  buildRelay,
  formPages,
  hashOf,
  invoicedMonth,
  invoiceOf,
  modelAt,
  put,
  readPages,
  smallPages,
} from './large-relay.ts';

const nowMs = Date.now();
const folder = process.env['RELAY_PICTURES'];
const widths = [1280, 390, 1920] as const;

/** As many requests as a page lists, with long names. */
const lines = Array.from({ length: 100 }, (_, at): LoggedLine => {
  const kind = at % 7;
  const fields = {
    message: 'request',
    request_id: `01kb2${String(at).padStart(21, '0')}`,
    account: accountAt(at),
    key_hint: 'sk-AbCd...wXyZ',
    model: modelAt(at % 20),
    ...(kind === 1 ? { alias: 'smart' } : {}),
    channel: kind === 3 ? 'none' : `upstream-${at % 7}`,
    outcome: kind === 3 ? 'refused' : kind === 5 ? 'failed' : 'completed',
    status: kind === 3 ? 429 : kind === 5 ? 502 : 200,
    ...(kind === 3 ? { code: 'rate_limit_exceeded', reason: 'limit_rate' } : {}),
    ...(kind === 5 ? { code: 'upstream_error', reason: 'upstream_status_500' } : {}),
    duration_ms: 1800 + at * 31,
    FirstContentMs: 300 + at * 7,
    prompt_tokens: 21_400 + at,
    completion_tokens: 410 + at,
    ChargeYuan: 0.0126 * (1 + (at % 90)),
    end_user: 'user-4711',
    tags: { team: 'search', run: 'nightly' },
  };
  return { atMs: nowMs - at * 9_000, fields };
});

const log: CallLog = {
  source: async () => ({ groups: ['chat'] }),
  search: async () => ({ lines: lines.toReversed(), scannedBytes: 90_000 }),
  counts: async ({ conditions }, { field }) => ({
    scannedBytes: 90_000,
    counts: lines
      .filter(({ fields }) =>
        conditions.every((each) => !('isOneOf' in each) || each.isOneOf.includes(String(fields[each.field]))),
      )
      .map(({ atMs, fields }) => ({
        startMs: Math.floor(atMs / 60_000) * 60_000,
        value: String(fields[field]),
        count: 1,
      })),
  }),
};

const pages = [
  ...readPages,
  ...formPages,
  ...smallPages,
  'customers-csv',
  'customers-sheet',
  'charges-csv',
  `requests/${String(lines[0]?.fields['request_id'])}`,
  'nowhere',
];

let rig: ConsoleRig;
let browser: Browser;
let page: Page;
let complaints: string[];
let base: string;
beforeAll(async () => {
  const items = buildRelay({ nowMs, accounts: 120, models: 40, channels: 8, rows: 120 });
  [rig, browser] = await Promise.all([startConsoleRig(items), startBrowser({ draws: folder !== undefined })]);
  await put(rig.client, 'charges', [
    { id: 900, type: 'token-billing', models: ['typed-wrong'], input: '0,018', output: 1 },
    {
      id: 901,
      type: 'token-billing',
      models: ['vendor-1/model-1'],
      input: 30,
      output: 0.4,
      tiers: [{ above: 32_000, input: 0.006, output: 0.024 }],
    },
  ]);
  const served = await rig.serve({ ports: { ...rig.ports, log } });
  ({ page, complaints } = await openPage(browser));
  await page.goto(served.address);
  base = page.url();
}, 120_000);
afterAll(async () => {
  await browser.close();
  await rig.stop();
});

/** What overflows: the page itself, and tables with columns outside their area. */
const whatIsCut = `
  (() => {
    const isWider = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1;
    const tables = [...document.querySelectorAll('.scroll')].filter(isWider);
    const names = tables.map((table) => table.getAttribute('aria-label'));
    return isWider(document.documentElement) ? ['the page', ...names] : names;
  })()`;

/** Takes a picture; of a long page only the top. */
async function picture(name: string): Promise<void> {
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  const size = await page.evaluate<{ width: number; height: number }>(
    '({ width: innerWidth, height: Math.min(2200, document.body.scrollHeight) })',
  );
  await page.screenshot({
    path: path.join(folder, `${name}.png`),
    fullPage: true,
    clip: { x: 0, y: 0, ...size },
  });
}

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  it('every page fits a phone, a laptop and a large screen, with all columns of its tables', async () => {
    await page.emulateMedia({ colorScheme });
    const cut: string[] = [];
    const look = async (at: string): Promise<void> => {
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 });
        for (const each of await page.evaluate<string[]>(whatIsCut)) cut.push(`/${at} at ${width}: ${each}`);
        if (width === 390 && colorScheme === 'light')
          for (const fault of await accessFaults(page)) cut.push(`/${at}: ${fault}`);
        const name = at.replaceAll(/[^\w-]+/g, '_') || 'overview';
        await picture(`${name}.${width}.${colorScheme}`);
      }
    };
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(base);
    expect(await page.evaluate<number>('document.documentElement.scrollHeight / innerHeight')).toBeLessThan(
      3,
    );
    for (const at of pages) {
      await page.setViewportSize({ width: widths[0], height: 900 });
      await page.goto(base + at);
      await look(at);
    }
    await page.goto(`${base}channels/upstream-0/invoice`);
    await page.getByLabel('Invoice (CSV)').fill(`${invoiceOf(30, 20)}\n${modelAt(39)},about 3`);
    await page.getByRole('button', { name: 'Compare' }).click();
    await look('invoice, refused');
    await page.getByLabel('Month (UTC)').fill(invoicedMonth(nowMs));
    await page.getByRole('button', { name: 'Compare' }).click();
    await look('invoice, compared');
    await page.getByText('Edit and compare again').click();
    await look('invoice, compared, to be changed');
    expect(cut).toEqual([]);
    expect(complaints.filter((each) => !/404|422/.test(each))).toEqual([]);
    expect(rig.faults).toEqual([]);
  }, 240_000);
});

const [first, closed] = [`customers/${accountAt(0)}`, `customers/${accountAt(7)}`];
const keyPath = (at: number): string => `keys/${hashOf(at)}`;
/** Lists of one row, since axe takes seconds for a hundred. */
const oneCustomer = encodeURIComponent(`customers?name=${accountAt(0)}`);
const oneKey = encodeURIComponent(`keys?text=${accountAt(1)}`);

interface FormWalk {
  /** Typed or chosen, by the name of the field. */
  typed?: Readonly<Record<string, string>>;
  /** True if it is also carried out and, if possible, undone. */
  isDone?: true;
  /** True if the form is shown again, because the channel has no secret here, or to ask for the columns of a list. */
  isAskedAgain?: true;
}

/** Each form, over its list if it has one. */
const formWalks: Readonly<Record<string, FormWalk>> = {
  [`${first}/grant?list=${oneCustomer}`]: { typed: { amount: '5' } },
  [`${first}/payback?list=${oneCustomer}`]: { typed: { amount: '0.01' } },
  [`${first}/keys/new?list=${oneCustomer}`]: { isDone: true },
  [`${first}/edit?list=${oneCustomer}`]: { typed: { note: 'looked at' }, isDone: true },
  [`${first}/close?list=${oneCustomer}`]: {},
  [`${closed}/reopen?list=${oneCustomer}`]: {},
  [`${closed}/erase?list=${oneCustomer}`]: {},
  [`${keyPath(2)}/edit?list=${oneKey}`]: { typed: { rpm: '10' } },
  [`${keyPath(4)}/enable?list=${oneKey}`]: {},
  [`${keyPath(2)}/disable?list=${oneKey}`]: {},
  [`${keyPath(2)}/rotate?list=${oneKey}`]: {},
  [`${keyPath(2)}/leaked?list=${oneKey}`]: { typed: { since: '1h' } },
  'channels/upstream-0/edit?list=channels': { typed: { weight: '7' } },
  'channels/upstream-0/test?list=channels': { isAskedAgain: true },
  'channels/upstream-0/probe?list=channels': { isAskedAgain: true },
  'channels/upstream-0/switch?list=channels': {},
  'charges/17?list=charges': { typed: { input: '20' } },
  [`charges/model/${encodeURIComponent(modelAt(3))}?list=charges`]: { typed: { output: '20' } },
  'settings/time_zone?list=settings': { typed: { value: 'Asia/Shanghai' } },
  'settings/plans/1?list=settings': { typed: { price: '98' } },
  'customers-new': { typed: { account: 'looked-at', amount: '5' } },
  'channels-new?type=openai': {
    typed: { id: 'looked-at', endpoint: 'https://a.example/v1', models: 'm', secret: 'env:A' },
  },
  'charges-new': { typed: { models: 'looked-at', input: '1', output: '2' } },
  'charges-import': { typed: { csv: 'model,input,output\nlooked-at,1,2' }, isAskedAgain: true },
  'customers-csv': { typed: { csv: `account,note\n${accountAt(0)},looked at twice` } },
  'customers-sheet': { typed: { csv: 'account,key.id\nlooked-at,main' }, isDone: true },
  'customers-codes-new': { typed: { amount: '5', count: '2', batch: 'looked-at' }, isDone: true },
  'customers-codes/looked-at/revoke': {},
};

it('every form in its drawer and every confirmation are accessible on a phone and a laptop, in light and dark', async () => {
  const faults: string[] = [];
  const look = async (at: string): Promise<void> => {
    const part = (await page.locator('dialog.drawer').count()) === 1 ? 'dialog.drawer' : 'main';
    // Axe ignores the top layer: it would treat an element with a z-index as above the drawer, and skip its colours.
    if (part !== 'main') await page.evaluate("document.querySelector('dialog.drawer').style.zIndex = 9");
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 390]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        // Only colours differ between light and dark.
        const looked = colorScheme === 'dark' ? { part, rules: ['color-contrast'] } : {};
        for (const each of await accessFaults(page, looked))
          faults.push(`/${at} at ${width}, ${colorScheme}: ${each}`);
        await picture(`${at.replaceAll(/[^\w-]+/g, '_')}.${width}.${colorScheme}`);
      }
  };
  const press = async (button: string): Promise<void> => {
    const loaded = page.waitForEvent('load');
    await page.locator(button).first().click();
    await loaded;
  };
  for (const [path, { typed = {}, isDone, isAskedAgain = false }] of Object.entries(formWalks)) {
    await page.goto(base + path);
    await look(path);
    for (const [name, text] of Object.entries(typed)) await page.locator(`main [name="${name}"]`).fill(text);
    await press('form.stacked > .buttons .main');
    if (((await page.locator('ul.effect').count()) === 0) !== isAskedAgain)
      faults.push(`/${path}: no confirmation`);
    await look(`${path}, confirmation`);
    if (!isDone) continue;
    await press('form[action^="confirm/"] button');
    await page.locator('.notice.good[role=status]').waitFor();
    await look(`${path}, result`);
    if ((await page.locator('form[action^="undo/"]').count()) === 0) continue;
    await press('form[action^="undo/"] button');
    await look(`${path}, Undo`);
  }
  await page.goto(`${base}${decodeURIComponent(oneCustomer)}`);
  await page.locator('tbody input[type=checkbox]').first().check();
  await page.locator('form[action="customers-selected"] select').selectOption('enabled=no');
  await press('form[action="customers-selected"] button[type=submit]');
  await look('selected, confirmation');
  // A rejected form, with the error at its field.
  await page.goto(`${base}${first}/grant?list=${oneCustomer}`);
  await page.locator('main [name="amount"]').fill('0,5');
  await press('form.stacked > .buttons .main');
  await look('refused');
  expect(faults).toEqual([]);
  expect(rig.faults).toEqual([]);
}, 600_000);

it('prints a statement in black only, also from a dark screen', async () => {
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await page.setViewportSize({ width: 800, height: 1100 });
  await page.goto(`${base}statements?account=${accountAt(0)}`);
  expect(await page.locator('nav:visible, form:visible, input:visible').count()).toBe(0);
  expect(await page.locator('h2').first().innerText()).toContain(accountAt(0));
  expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(255, 255, 255)');
  await picture('statement.print');
});
