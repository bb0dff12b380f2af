import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import type { Page } from 'playwright-core';
import { accessFaults } from '../support/browser.ts';
import { describe, expect, it } from 'vitest';
import { manyModels } from './many-models.ts';
import { looksSound, pagesRig } from './pages-rig.ts';
import { dayUsage, pageKey, usageRow } from './pages-server.ts';

const { server, open } = pagesRig((each) => {
  Object.assign(each, manyModels(Date.now()));
  each.rows = Array.from({ length: 45 }, (_, at) => usageRow(`01m81b5hbv5v6x8y9z0a1b2${at + 100}`, at * 60));
  each.days = [dayUsage('gpt-4o', 0), dayUsage('qwen1', 0, { charge: 2.5 }), dayUsage('gpt-4o', 20)];
});

const opened = (path = `/account#${pageKey}`, options = {}) => open(path, options);

/** Simulates a missing network. */
const cutOff = (): void => {
  server.instead = (_request, response) => {
    response.destroy();
    return true;
  };
};

const balance = (page: Page) => page.getByText('¥41.25');

describe('the key', () => {
  it('in the fragment opens the account and disappears from the address bar, and no request line or referrer contains it', async () => {
    const { page, complaints } = await opened();
    await balance(page).waitFor();
    await page.locator('#rows tr').first().waitFor();
    expect(page.url()).toBe(`${server.address}/account`);
    expect(await page.evaluate('[sessionStorage.length, localStorage.length, document.cookie]')).toEqual([
      0,
      0,
      '',
    ]);
    expect(await page.content()).not.toContain(pageKey);
    for (const { url, headers } of server.seen) {
      expect(url).not.toContain('sk-');
      expect(headers.referer).toBeUndefined();
    }
    const bearers = server.seen.filter(({ headers }) => headers.authorization === `Bearer ${pageKey}`);
    expect(new Set(bearers.map(({ url }) => url.split('?')[0]))).toEqual(
      new Set(['/v1/account', '/v1/account/usage', '/v1/models']),
    );
    expect(complaints).toEqual([]);
    await page.goBack();
    await page.goForward();
    expect(page.url()).not.toContain('sk-');
  });

  it('that was typed is lost on reload, or stays only in this tab if the customer chooses that', async () => {
    const { page } = await opened('/account');
    const typeKey = async (): Promise<void> => {
      await page.getByLabel('API key', { exact: true }).fill(pageKey);
      await page.keyboard.press('Enter');
      await balance(page).waitFor();
    };
    await typeKey();
    await page.reload();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Remember the key until').check();
    await typeKey();
    await page.reload();
    await balance(page).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${server.address}/account`);
    await other.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.reload();
    await expect.poll(() => page.getByRole('button', { name: 'Sign in' }).isVisible()).toBe(true);
  });

  it('from a link replaces a stored key if it is accepted, and keeps that if it is rejected', async () => {
    const { page } = await opened('/account');
    await page.evaluate(`sessionStorage.setItem('relay-key', '${pageKey}')`);
    await page.goto(`${server.address}/account#sk-wrong`);
    await page.getByText('The API key is not valid.').waitFor();
    await page.reload();
    await balance(page).waitFor();
    await page.evaluate("sessionStorage.setItem('relay-key', 'sk-another')");
    await page.evaluate(`location.hash = '#${pageKey}'`);
    await expect.poll(() => page.evaluate('sessionStorage.length')).toBe(0);
  });

  it('that was typed stays in its field if the relay cannot be reached', async () => {
    const { page } = await opened('/account');
    cutOff();
    const key = page.getByLabel('API key', { exact: true });
    // With the keyboard only.
    await page.keyboard.type(pageKey);
    await page.keyboard.press('Enter');
    await page.getByText('could not be reached').waitFor();
    expect(await key.inputValue()).toBe(pageKey);
  });

  it('cannot be found by the next user of the browser: neither with the Back button nor in the page after logout', async () => {
    const { page } = await opened(`/account#%20${pageKey}%0A`);
    // Otherwise the request for the ledger may arrive after the list of requests is emptied below.
    await page.locator('#rows tr').first().waitFor();
    expect(page.url()).toBe(`${server.address}/account`);
    // This build of Chromium caches no page for its Back button, so the test sends the events of other browsers.
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
    expect(await balance(page).isVisible()).toBe(false);
    server.seen.length = 0;
    await page.evaluate("document.querySelector('#refresh').click()");
    const again = page.waitForEvent('load');
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
    await again;
    // Every page requests the public list of models at some point.
    expect(server.seen.map(({ url }) => url).filter((url) => url !== '/v1/models')).toEqual(['/account']);
    await page.evaluate(`location.hash = '#${pageKey}'`);
    await page.locator('#rows tr').first().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await page.content()).not.toMatch(/41\.25|01m81b5hbv5v/);
  });

  it('that is rejected shows the relay’s error and is not stored, and an invalid key is not sent', async () => {
    const { page } = await opened('/account#sk-wrong');
    await page.getByText('The API key is not valid.').waitFor();
    // Written for the holder of the key. Covers both cases, because the relay's answer does not distinguish them.
    expect(await page.locator('#sign-state.wrong').innerText()).toMatch(/disabled.*expired.*under Keys/);
    expect(await accessFaults(page)).toEqual([]);
    expect(page.url()).not.toContain('#');
    server.seen.length = 0;
    await page.getByLabel('API key', { exact: true }).fill('hunter2');
    await page.keyboard.press('Enter');
    await page.getByText('An API key starts with sk-.').waitFor();
    expect(server.seen).toEqual([]);
  });
});

describe('what the page shows', () => {
  it.each(['en-US', 'zh-CN'])(
    'includes the full id of a call with long cells on a screen (%s)',
    async (locale) => {
      const long = {
        model: 'anthropic/claude-sonnet-4-5',
        end: 'client_gone',
        charge: 1234.567891234,
      } as const;
      const tokens = { prompt_tokens: 123_456, completion_tokens: 12_345, cached_tokens: 120_000 };
      server.rows = [usageRow('01m81b5hbv5v6x8y9z0a1b2100', 0, { ...long, ...tokens })];
      const { page } = await opened(undefined, { locale });
      await page.locator('#rows tr').first().waitFor();
      const region = "document.querySelector('#ledger .wide')";
      expect(await page.evaluate(`${region}.scrollWidth - ${region}.clientWidth`)).toBe(0);
    },
  );

  looksSound((options) => opened('/account', options));
  looksSound(async (options) => {
    const made = await opened(undefined, options);
    await made.page.locator('#rows tr').first().waitFor();
    await made.page.locator('#plot rect').first().waitFor();
    return made;
  });

  it('includes balance, plan, limits, notices, announced prices and usage by day and model', async () => {
    server.budgets = [
      { by: 'tag:team', name: '<b>', amount: 5, period: 'month', used: 1.5, resets_at: 1_796_083_200 },
      { by: 'end_user', name: '*', amount: 1, period: 'day', used: null, resets_at: 1_796_083_200 },
    ];
    const { page } = await opened();
    await page.locator('#plot rect').first().waitFor();
    const budgets = await page.locator('#budgets').innerText();
    expect(budgets).toMatch(/team = <b>: ¥1\.50 \/ ¥5\.00 per month, resets on /);
    expect(budgets).toMatch(/End user = any other name: ¥1\.00 per day, resets on /);
    expect(await page.locator('#budgets progress').count()).toBe(1);
    const text = await page.locator('main').innerText();
    for (const part of ['¥41.25', '¥8.75', '¥50.00', 'Level 1', '0 of 1,000 calls', 'نماذج كبيرة'])
      expect(text).toContain(part);
    expect(text).toContain('<b>qwen</b>');
    expect(text).toMatch(
      /From 1 Jan \d{4}.*: ¥1\.50 input, ¥6\.00 output per 1M tokens; 0\.5× that in flex gpt-1 gpt-2/,
    );
    expect(await page.locator('#by-model tr').first().innerText()).toMatch(
      /qwen1\s+¥2\.50\s+1\s+1,200\s+350/,
    );
    expect(await page.locator('#plot').getByText('qwen1: ¥2.50').count()).toBe(1);
    expect(await page.getByText('2 calls', { exact: true }).isVisible()).toBe(true);
    await page.locator('#days').selectOption('30');
    await page.getByText('3 calls', { exact: true }).waitFor();
    expect(server.seen.at(-1)?.url).toBe('/v1/account?days=30');
  });

  it('includes group prices of the customer with their end, and those that replace them', async () => {
    const monday = Date.UTC(2099, 10, 30);
    const priced = { type: 'token-billing' as const, anonymous: false };
    server.snapshot = {
      models: ['gpt-a', 'gpt-b', 'claude-a'],
      charges: [
        { ...priced, id: 1, models: ['gpt-a', 'gpt-b'], input: 0.01, output: 0.03, cached_input: 0.001 },
        { ...priced, id: 2, models: ['claude-a'], input: 0.02, output: 0.1, cache_write: 0.025 },
        { ...priced, id: 3, models: ['gpt-a'], input: 0.008, output: 0.024, from: monday },
      ],
    };
    const claude = { models: ['claude-a'], factor: 0.5, from: monday };
    server.settings = { priceGroups: { resellers: [claude, { models: ['*'], factor: 0.8 }] } };
    server.account = { price_group: 'resellers' };
    const { page } = await opened();
    const lines = page.locator(':is(#prices, #changes) li');
    await expect
      .poll(() => lines.allInnerTexts())
      .toEqual(
        [
          /^¥8\.00 .*¥0\.80 .*¥24\.00 .*gpt-a .*30 Nov 2099, 00:00 UTC$/,
          /^¥8\.00 .*¥0\.80 .*¥24\.00 .*gpt-b$/,
          /^¥16\.00 .*¥20\.00 .*¥80\.00 .*claude-a .*30 Nov 2099, 00:00 UTC$/,
          /30 Nov 2099, 00:00 UTC.* ¥6\.40 .*¥19\.20 .*gpt-a$/,
          /30 Nov 2099, 00:00 UTC.* ¥10\.00 .*¥12\.50 .*¥50\.00 .*claude-a$/,
        ].map((each): unknown => expect.stringMatching(each)),
      );
  });

  it('includes how long the balance lasts, and a warning below the alert level', async () => {
    server.daysLeft = 36.5;
    const { page } = await opened();
    const figures = page.locator('#figures');
    await expect.poll(() => figures.innerText()).toMatch(/Lasts about\s+36 days\s+at this month’s pace/);
    expect(await page.getByText('Your balance is below').count()).toBe(0);
    server.account = { alert_below: '41.3' };
    server.daysLeft = null;
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('#notices').getByText('Your balance is below ¥41.30.').waitFor();
    expect(await figures.innerText()).not.toContain('Lasts about');
    expect(await page.locator('#figures .low').innerText()).toBe('¥41.25');
    expect(await accessFaults(page)).toEqual([]);
  });

  it('includes what a plan paid, and failed calls', async () => {
    server.rows = [
      usageRow('a', 1, { charge: 0, plan_slot: 'chat#2026-11' }),
      usageRow('b', 2, { charge: 0, end: 'failed' }),
      usageRow('c', 3, { charge: 2.5 }),
      usageRow('d', 4, { charge: 0.0468 }),
      usageRow('grant#e', 5, { kind: 'grant', amount: -1, reason: 'refund' }),
    ];
    const { page } = await opened();
    const texts = page.locator('#rows td:nth-child(6)');
    await expect
      .poll(() => texts.allInnerTexts())
      .toEqual(['¥0.0000\ncovered by plan', '¥0.0000', '¥2.5000', '¥0.0468', '−¥1.0000']);
    expect(await page.locator('#rows .wrong').allInnerTexts()).toEqual(['failed']);
  });

  it('includes the end of a plan, and nothing about a plan that never existed', async () => {
    server.planUntil = Date.parse('2026-03-05T12:00:00Z');
    const { page } = await opened();
    await expect.poll(() => page.locator('#plan').innerText()).toMatch(/Plan\s+Ended on 5 Mar 2026, /);
    server.settings = { ...server.settings, subscriptionEnabled: false };
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('#plan').waitFor({ state: 'hidden' });
  });

  it('counts rejected and failed calls as the relay does', async () => {
    server.refusals = [{ account: 'acme', hour: '2026-11-22T09', counts: { rate_limit_exceeded: 7 } }];
    const { page } = await opened();
    await expect.poll(() => page.locator('#errors').innerText()).toMatch(/rate_limit_exceeded\s+7/);
  });

  it('pages through the ledger in both directions', async () => {
    const { page } = await opened();
    const first = page.locator('#rows tr code').first();
    await expect.poll(() => first.innerText()).toMatch(/2100$/);
    await page.getByRole('button', { name: 'Older' }).click();
    await expect.poll(() => first.innerText()).toMatch(/2120$/);
    await page.getByRole('button', { name: 'Older' }).click();
    await expect.poll(() => first.innerText()).toMatch(/2140$/);
    expect(await page.getByRole('button', { name: 'Older' }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Newer' }).click();
    await expect.poll(() => first.innerText()).toMatch(/2120$/);
    // A refresh, also after each call of the playground, keeps the page.
    server.rows[20] = { ...server.rows[20]!, id: 'newly' };
    await page.getByRole('button', { name: 'Refresh' }).click();
    await expect.poll(() => first.innerText()).toBe('newly');
    await page.getByText('Page 2').waitFor();
  });

  it('can be filtered by end user and tag, with their sum, also for the file', async () => {
    for (const at of [3, 7])
      server.rows[at] = usageRow(`of-bob-${at}`, at, {
        charge: 0.25,
        end_user: 'bob',
        tags: { team: 'a', env: 'b' },
      });
    const { page } = await opened();
    await page.locator('#rows tr').first().waitFor();
    await page.getByLabel('End user').fill('bob');
    await page.keyboard.press('Enter');
    await page.getByText('Page 1: 2 calls, ¥0.50').waitFor();
    expect(await page.locator('#rows tr').first().innerText()).toContain('for bob, env=b, team=a');
    await page.getByLabel('Tag').fill('team=a');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => server.seen.at(-1)?.url)
      .toBe('/v1/account/usage?limit=20&end_user=bob&tag=team%3Da');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const rows: Record<string, string>[] = parse(readFileSync(await (await download).path()), {
      columns: true,
    });
    expect(rows.map((row) => [row['end_user'], row['tags']])).toEqual([
      ['bob', 'env=b, team=a'],
      ['bob', 'env=b, team=a'],
    ]);
  });

  it('reads no rows for the plot, and saves 2,500 as CSV without executable formulas', async () => {
    server.rows = Array.from({ length: 2_500 }, (_, at) => usageRow(`row-${at}`, at));
    server.rows[3] = usageRow('grant#1', 3, {
      kind: 'grant',
      model: null,
      amount: 50,
      reason: '\uFF1DHYPERLINK("x"),\n1',
    });
    server.rows[4] = usageRow('row-4', 4, { charge: 1e-9, service_tier: 'flex' });
    const { page } = await opened();
    await page.locator('#plot rect').first().waitFor();
    await page.locator('#rows tr').first().waitFor();
    const read = server.seen.filter(({ url }) => url.includes('usage?'));
    expect(read.map(({ url }) => url)).toEqual(['/v1/account/usage?limit=20']);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe('usage.csv');
    const rows: Record<string, string>[] = parse(readFileSync(await file.path()), { columns: true });
    expect(rows).toHaveLength(2_500);
    expect(rows[3]).toMatchObject({ id: 'grant#1', amount: '50', reason: `'\uFF1DHYPERLINK("x"),\n1` });
    expect(rows[4]).toMatchObject({ charge: '0.000000001', model: 'gpt-4o', service_tier: 'flex' });
  });

  it('reports an unreachable relay, and keeps the open account', async () => {
    const { page } = await opened();
    await balance(page).waitFor();
    cutOff();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.locator('#open-state.wrong').getByText('could not be reached').waitFor();
    expect(await balance(page).isVisible()).toBe(true);
  });

  it('includes monthly statements with the seller, which can be printed alone and saved as CSV', async () => {
    const models = [
      {
        model: 'gpt-4o',
        calls: 3,
        failed_calls: 0,
        prompt_tokens: 8000,
        completion_tokens: 1600,
        cached_tokens: 0,
        charge: 0.75,
        searches: 0,
      },
      {
        model: '=evil',
        calls: 1,
        failed_calls: 1,
        prompt_tokens: 1,
        completion_tokens: 1,
        cached_tokens: 0,
        charge: 0.250000003,
        searches: 0,
      },
    ];
    const { page } = await opened();
    const months = page.locator('#month');
    await expect.poll(() => months.locator('option').count()).toBe(24);
    await months.selectOption({ index: 1 });
    const month = await months.inputValue();
    server.statement = {
      object: 'account.statement',
      currency: 'CNY',
      account: 'acme',
      month,
      seller: { name: 'Example <b>Ltd</b>', address: '1 Example Road\nShanghai' },
      opening: 37.5,
      granted: 12,
      charged: 1.000000003,
      metered: 0,
      closing: 48.499999997,
      final: false,
      grants: [{ id: 'grant#b', created: Date.parse(`${month}-07`) / 1000, amount: 12, reason: 'card' }],
      prices: null,
      models,
    };
    await page.locator('#show-statement').click();
    const paper = page.locator('#paper');
    await paper.getByText('Example <b>Ltd</b>').waitFor();
    expect(server.seen.at(-1)?.url).toBe(`/v1/account/statement?month=${month}`);
    // All with the same number of decimals, so that they align and add up.
    expect(await paper.locator('tbody td:last-child').allInnerTexts()).toEqual([
      '37.500000000',
      '12.000000000',
      '-0.750000000',
      '-0.250000003',
      '48.499999997',
    ]);
    expect(await paper.innerText()).toContain('Provisional');
    expect(await accessFaults(page)).toEqual([]);
    const saved = page.waitForEvent('download');
    await paper.getByRole('button', { name: 'Download statement' }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe(`statement-${month}.csv`);
    const rows: Record<string, string>[] = parse(readFileSync(await file.path()), { columns: true });
    expect(rows.map(({ what, failed_calls, amount }) => [what, failed_calls, amount]).slice(2)).toEqual([
      ['gpt-4o', '0', '-0.75'],
      ["'=evil", '1', '-0.250000003'],
      ['Closing balance', '', '48.499999997'],
    ]);
    // On a phone no name is squeezed into a one-letter column.
    await page.setViewportSize({ width: 390, height: 800 });
    const names = page.locator('.numbers tbody th');
    await expect
      .poll(() => names.evaluateAll((all) => Math.min(...all.map((each) => each.clientWidth))))
      .toBeGreaterThan(300);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ media: 'print' });
    expect(await paper.getByText('Closing balance').isVisible()).toBe(true);
    for (const other of ['.top', 'h1', '#figures', '#usage', '#ledger', '#paper button'])
      expect([other, await page.locator(other).first().isVisible()]).toEqual([other, false]);
    await page.emulateMedia({ media: 'screen' });
    server.statement = undefined;
    await page.locator('#show-statement').click();
    await page.locator('#statement-state.wrong').getByText('Invalid month.').waitFor();
  });

  it('is in the language of the browser, or in a chosen one on every page', async () => {
    const { page } = await opened(undefined, { locale: 'zh-CN' });
    await page.locator('#rows tr').first().waitFor();
    const shown = await page.locator('main').innerText();
    for (const part of ['我的账户', '可用余额', '1 级套餐', '0 / 1,000 次', '调用与充值', '输入 1,200'])
      expect(shown).toContain(part);
    expect(await page.evaluate('[document.documentElement.lang, document.title]')).toEqual([
      'zh-CN',
      '我的账户',
    ]);
    for (const each of await page.locator('[data-t]').allTextContents())
      expect(each).toMatch(/[\u4E00-\u9FFF]|^token$|^UTC$/);
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByText('Page 1').waitFor();
    await expect.poll(() => page.locator('#figures').innerText()).toContain('Available');
    for (const each of await page.locator('[data-t]').allTextContents())
      expect(each).not.toMatch(/[\u4E00-\u9FFF]/);
    await page.reload();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.goto(server.address);
    await page.getByText('300 models, one API').waitFor();
    await page.getByRole('link', { name: '中文' }).click();
    await page.getByText('300 个模型，一个 API').waitFor();
    await page.goto(`${server.address}/account`);
    await page.getByRole('button', { name: '登录' }).waitFor();
  });

  it('cannot be shown in a frame', async () => {
    const { page, complaints } = await open();
    server.instead = ({ url }, response) => {
      if (url !== '/frame') return false;
      response.writeHead(200, { 'content-type': 'text/html' }).end('<iframe src="/account"></iframe>');
      return true;
    };
    await page.goto(`${server.address}/frame`);
    await expect.poll(() => complaints.join()).toContain('frame-ancestors');
    expect(await page.frameLocator('iframe').locator('#sign-form').count()).toBe(0);
  });
});
