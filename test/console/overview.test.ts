/** The overview on a second screen, in a real browser, and the reads of each refresh. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createOpenRegistry } from '../../shared/adapters/dynamodb/quotas/open-registry.ts';
import { buildEmptyQuota, encodeEntry } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';
import type { CallLog, OperatorPorts } from '../../shared/operate/operator-ports.ts';
import { bulkWrite } from '../support/bulk-write.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { openPage } from '../support/browser.ts';
import { startWatchedRig, type ConsoleRig } from './console-rig.ts';
import { accountAt } from './large-relay.ts';

const nowMs = Date.now();
let rig: ConsoleRig;
let browser: Browser;
beforeAll(async () => {
  [rig, browser] = await startWatchedRig(nowMs);
}, 120_000);
afterAll(async () => {
  await browser.close();
  await rig.stop();
});
// Live pages would keep sending requests.
afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));

async function opened(
  ports: OperatorPorts = rig.ports,
  path = '',
): Promise<{ page: Page; complaints: string[] }> {
  const served = await rig.serve({ ports });
  const made = await openPage(browser, { timezoneId: 'Asia/Shanghai' });
  await made.page.goto(served.address);
  if (path !== '') await made.page.goto(made.page.url() + path);
  return made;
}

describe('the live overview', () => {
  it('counts the calls in flight of the latest callers, and their reservations', async () => {
    const { client } = rig;
    const entry = encodeEntry({
      until: Math.floor(Date.now() / 1000) + 50,
      amount: 1_500_000_000n,
      input: 1n,
      key: 'k',
      model: 'm',
      price: 'token:1:1,1',
      slot: '',
      official: false,
      tombstone: false,
    });
    const open = { M: { first: entry, second: entry } };
    await bulkWrite(client, physicalNameOf('relay', 'quotas'), [
      { ...buildEmptyQuota({ account: accountAt(3) }), open },
    ]);
    const registry = createOpenRegistry(tablesOn(client), 'relay');
    const atSeconds = Math.floor(Date.now() / 1000) + 50;
    await registry.register([3, 4].map((at) => ({ item: accountAt(at), atSeconds })));
    const { page } = await opened();
    const tile = page.locator('.tiles li').first();
    await expect.poll(() => tile.innerText(), { timeout: 10_000 }).toMatch(/In flight\s+2\s+¥3.00 reserved/);
  });

  it('reads the log of AWS only after a click on a button that shows the price', async () => {
    let counted = 0;
    const log: CallLog = {
      ...rig.ports.log,
      source: async () => ({ groups: ['chat'], kept: [{ bytes: 2.4e9, sinceMs: nowMs - 24 * 3_600_000 }] }),
      async counts() {
        counted += 1;
        return { scannedBytes: 1e8, counts: [{ startMs: nowMs, value: 'limit_rate', count: 7 }] };
      },
    };
    const { page } = await opened({ ...rig.ports, log, target: { ...rig.ports.target, local: false } });
    const refused = page.locator('#overview-refused');
    // An hour contains 100 MB, and is read twelve times.
    expect(await refused.innerText()).toMatch(/reads 1\.2 GB \(\$0\.006\) per hour/);
    await expect.poll(() => page.locator('#overview-look').innerText()).toContain('Updated');
    expect([counted, await page.locator('.live').getAttribute('data-hours')]).toEqual([0, null]);
    await refused.getByRole('link', { name: 'Count refused calls' }).click();
    expect(await refused.innerText()).toMatch(/limit_rate\s+7/);
    expect([counted > 0, await page.locator('.live').getAttribute('data-hours')]).toEqual([true, '12']);
  });

  it('shows times in the browser’s zone if chosen, also in parts that arrive later', async () => {
    const { page, complaints } = await opened();
    const lookedAt = page.locator('#overview-look time');
    const utc = await lookedAt.innerText();
    expect(await lookedAt.getAttribute('datetime')).toContain(utc);
    await page.getByRole('button', { name: 'UTC' }).click();
    await page.getByRole('button', { name: 'Local time' }).waitFor();
    const [written, shown] = [await lookedAt.getAttribute('datetime'), await lookedAt.innerText()];
    const inShanghai = new Date(Date.parse(String(written)) + 8 * 3_600_000).toISOString();
    expect(inShanghai.replace('T', ' ')).toContain(shown);
    expect(shown.slice(0, 2)).not.toBe(written?.slice(11, 13));
    const point = page.locator('figure g[data-utc]').first();
    const hour = new Date(Date.parse(`${await point.getAttribute('data-utc')}Z`) + 8 * 3_600_000);
    expect(await point.locator('title').textContent()).toContain(
      hour.toISOString().slice(0, 16).replace('T', ' '),
    );
    expect(complaints).toEqual([]);
  });

  it('keeps the chosen order of a table while it is live and after a reload', async () => {
    const { page } = await opened();
    const table = page.locator('#overview-channels table');
    const names = () => table.locator('tbody th').allInnerTexts();
    await table.getByRole('button', { name: 'Channel' }).click();
    await table.getByRole('button', { name: 'Channel' }).click();
    const chosen = await names();
    expect(chosen).toEqual(chosen.toSorted().toReversed());
    await page.reload();
    await expect.poll(() => page.locator('#overview-look').innerText()).toContain('Updated');
    expect([await names(), await table.locator('th[aria-sort=descending]').innerText()]).toEqual([
      chosen,
      expect.stringContaining('Channel'),
    ]);
  });

  it('supports keys for navigation and search, but not while typing', async () => {
    const { page } = await opened();
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.waitForURL(/customers$/);
    await page.keyboard.press('/');
    expect(await page.locator(':focus').getAttribute('name')).toBe('name');
    await page.keyboard.type('go/k');
    expect(await page.locator(':focus').inputValue()).toBe('go/k');
    expect(page.url()).toMatch(/customers$/);
  });
});

it('a form opens over its list by script; Escape and saving return to the position in the list', async () => {
  const { page, complaints } = await opened(
    rig.ports,
    'customers?sort=Customers&sort=Customer&sort=descending',
  );
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  // The list of changes after saving also names the account.
  const row = page.getByRole('row', { name: `Select ${accountAt(8)}` });
  const place = () => page.evaluate<number>('scrollY');
  await row.scrollIntoViewIfNeeded();
  await row.getByRole('button', { name: `Copy ${accountAt(8)}` }).click();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(accountAt(8));
  const before = await place();
  expect(before).toBeGreaterThan(200);
  const isBack = async () => Math.abs((await place()) - before) < 120;
  await row.getByRole('link', { name: 'Edit' }).click();
  const drawer = page.getByRole('dialog');
  expect(await drawer.innerText()).toContain('Concurrent calls');
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await expect.poll(isBack).toBe(true);
  expect(await row.getByRole('link', { name: 'Edit' }).and(page.locator(':focus')).count()).toBe(1);
  await row.getByRole('link', { name: 'Edit' }).click();
  await drawer.getByLabel('Note').fill('from the drawer');
  // Escape asks before it discards text; the test's browser answers no.
  await page.keyboard.press('Escape');
  await drawer.getByRole('button', { name: 'Continue' }).click();
  await drawer.getByRole('button', { name: 'Save' }).waitFor();
  expect(await page.locator(':focus').innerText()).toBe('What will happen');
  await drawer.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  expect(await row.innerText()).toContain('from the drawer');
  await expect.poll(isBack).toBe(true);
  expect(page.url()).toContain('sort=descending');
  expect(await page.locator('.notice[role=status]:focus').count()).toBe(1);
  expect(complaints).toEqual([]);
});
