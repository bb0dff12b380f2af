import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveConsole, type ServedConsole } from '../../infra/ops/console/serve.ts';
import { openSession } from '../../infra/ops/session/session.ts';
import { accessFaults, openPage, startBrowser } from '../support/browser.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';

let stack: LocalStack;
let browser: Browser;
const served: ServedConsole[] = [];

async function openConsole(options: { readOnly?: boolean } = {}): Promise<ServedConsole> {
  const target = { stack: 'relay', endpoint: stack.dynamodbEndpoint, local: true };
  const { ports } = await openSession(target, {});
  const one = await serveConsole(ports, {
    readOnly: options.readOnly ?? false,
    port: 0,
    where: 'relay, local tables',
    name: 'local',
    onFault: (error) => {
      throw error;
    },
  });
  served.push(one);
  return one;
}

const call = (key: string, model = 'demo-chat'): Promise<Response> =>
  fetch(`${stack.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  });

/** Loads a page again until it says this. What functions write arrives within seconds. */
async function untilSaid(page: Page, words: RegExp): Promise<void> {
  await expect
    .poll(
      async () => {
        await page.reload();
        return page.locator('main').innerText();
      },
      { timeout: 15_000, interval: 300 },
    )
    .toMatch(words);
}

beforeAll(async () => {
  [stack, browser] = await Promise.all([startLocalStack(), startBrowser()]);
});
afterAll(async () => {
  for (const one of served) one.stop();
  await browser.close();
  await stack.stop();
});

const sections = [
  '',
  'customers',
  'keys',
  'channels',
  'charges',
  'requests',
  'statements',
  'versions',
  'audit',
];

describe('a browser in front of the console on the running stack', () => {
  it('makes a customer and a key without any script, and calls with it', async () => {
    const { page } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto((await openConsole()).address);
    await page.getByRole('link', { name: 'Customers' }).click();
    await page.getByRole('link', { name: 'New customer' }).click();
    await page.getByLabel('Name').fill('walker');
    await page.getByLabel('Amount, yuan').fill('fifty');
    await page.getByRole('button', { name: 'Go on' }).click();
    expect(await page.locator('#amount-error').innerText()).toMatch(/wanted/);
    expect(await page.locator(':focus').getAttribute('id')).toBe('field-amount');
    expect(await page.getByLabel('Name').inputValue()).toBe('walker');

    await page.getByLabel('Amount, yuan').fill('50');
    await page.getByRole('button', { name: 'Go on' }).click();
    expect(await page.locator('main').innerText()).toMatch(
      /account walker is new[^]*granted 50 yuan[^]*a key[^]*Make customer walker with 50 yuan\?/,
    );
    // What was typed is kept, to be changed once more.
    await page.getByRole('link', { name: 'Change the values' }).click();
    expect(await page.getByLabel('Name').inputValue()).toBe('walker');
    await page.getByLabel('Note').fill('met at the fair');
    await page.getByLabel('Link with the key').check();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Make it' }).click();
    // It works until the grant is applied; its page loads itself again.
    await expect.poll(() => page.locator('main').innerText()).toContain('50 yuan are available now');
    const key = (await page.locator('[data-secret]').innerText()).trim();
    expect(key).toMatch(/^sk-\S{40,}$/);
    expect(await page.locator('pre.command').innerText()).toMatch(
      new RegExp(`Your account walker is ready, with 50 yuan[^]*API key:  ${key}[^]*/account#${key}`),
    );
    await page.reload();
    expect(await page.content()).not.toContain(key);
    await expect.poll(async () => (await call(key)).status, { timeout: 15_000 }).toBe(200);

    await page.goto(`${new URL('./', page.url()).href.replace(/done\/$/, '')}customers/walker`);
    await untilSaid(page, /demo-chat/);
    expect(await page.content()).not.toContain(key);
    expect(await page.locator('main').innerText()).toContain('met at the fair');

    await page.getByRole('link', { name: 'Statement', exact: true }).click();
    expect(await page.locator('.tiles').innerText()).toMatch(
      /Opening balance\s+0¥[^]*Granted\s+50¥\s+1 top-up[^]*Charged\s+0\.000042¥\s+1 call\s[^]*Balance now\s+49\.999958¥\s+exact/,
    );
  });

  it('changes a price: shows what differs, refuses one that somebody else changed, and rolls back', async () => {
    const { page, complaints } = await openPage(browser);
    await page.goto((await openConsole()).address);
    const base = page.url();
    await page.goto(`${base}charges/1`);
    await page.getByLabel('Input, yuan').first().fill('-1');
    await page.getByRole('button', { name: 'Check and go on' }).click();
    expect(await page.locator('#input-error').innerText()).toMatch(/found -1/);
    await page.getByLabel('Input, yuan').first().fill('1.5');
    await page.getByRole('button', { name: 'Check and go on' }).click();
    expect(await page.locator('table').first().innerText()).toMatch(/input\s+0\.001\s+0\.0015/);
    expect(await page.locator('.notice.warning').innerText()).toMatch(/rises by 50 %/);
    expect(await page.locator('main').innerText()).toContain('What it would have made of the last days');
    const confirm = page.url();

    const other = await page.context().newPage();
    await other.goto(`${base}charges/1`);
    await page.getByRole('button', { name: 'Write this' }).click();
    expect(await page.locator('main').innerText()).toContain('1 row is written');
    await other.getByLabel('Output, yuan').fill('9');
    await other.getByRole('button', { name: 'Check and go on' }).click();
    expect(await other.locator('main').innerText()).toContain('was changed by somebody else meanwhile');
    // The plan that was carried out is not carried out again.
    await other.goto(confirm);
    expect(other.url()).toContain('/done/');

    await page.goto(`${base}versions`);
    await untilSaid(page, /\n2\t/);
    await page.getByRole('button', { name: 'Roll back to it' }).last().click();
    expect(await page.locator('main').innerText()).toMatch(/0\.0015/);
    await page.getByRole('button', { name: 'Roll back' }).click();
    expect(await page.locator('main').innerText()).toContain('is written');
    await page.goto(`${base}charges/1`);
    expect(await page.getByLabel('Input, yuan').first().inputValue()).toBe('1');
    // Answers to forms that were refused.
    expect(complaints.filter((each) => !/status of (422|409)/.test(each))).toEqual([]);
  });

  it('tests the channel with a real request, and shows the call on the overview with its plots', async () => {
    const { page, complaints } = await openPage(browser);
    await page.goto((await openConsole()).address);
    const base = page.url();
    expect((await call(stack.key)).status).toBe(200);
    await page.goto(`${base}channels`);
    await page.locator('tbody th a').first().click();
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByRole('button', { name: 'Send it' }).click();
    expect(await page.locator('main').innerText()).toMatch(/Status 200 after/);
    await page.goto(base);
    await untilSaid(page, /demo-chat/);
    await expect.poll(() => page.locator('figure.plot svg').count()).toBe(3);
    expect(complaints).toEqual([]);
  });

  it('rotates a key, calls with the new one at once, answers its leak, and disables the successor', async () => {
    const { page } = await openPage(browser);
    await page.goto((await openConsole()).address);
    const base = page.url();
    await page.goto(`${base}customers/demo`);
    await page.getByRole('link', { name: 'Rotate' }).first().click();
    await page.getByLabel('The old key works for, hours').fill('24');
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Make the new key' }).click();
    const key = (await page.locator('[data-secret]').innerText()).trim();
    await expect.poll(async () => (await call(key)).status, { timeout: 10_000 }).toBe(200);
    await page.goto(`${base}keys?text=${key.slice(0, 7)}`);
    await page.getByRole('link', { name: 'Leaked' }).click();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Refuse it' }).click();
    await expect.poll(() => page.locator('main').innerText()).toContain('is refused within 30 seconds');
    const next = (await page.locator('[data-secret]').innerText()).trim();
    expect(await page.locator('pre.command').innerText()).toContain(
      `Your new key, with the same rights: ${next}`,
    );
    expect(await page.locator(':focus').getAttribute('role')).toBe('status');
    await page.goto(`${base}keys?text=${next.slice(0, 7)}`);
    await page.getByRole('link', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Go on' }).click();
    expect(await page.locator('button.grave').innerText()).toBe('Disable it');
    await page.getByRole('button', { name: 'Disable it' }).click();
    expect(await page.locator('main').innerText()).toContain('is refused within 30 seconds');
    await page.goto(`${base}keys?text=${next.slice(0, 7)}`);
    expect(await page.locator('table').innerText()).toContain('disabled');
  });

  it.each(['light', 'dark'] as const)(
    'is without faults by axe on every page, in %s',
    async (colorScheme) => {
      const { page, complaints } = await openPage(browser, { colorScheme });
      await page.goto((await openConsole()).address);
      const base = page.url();
      const more = [
        'customers/demo',
        'customers/demo/grant',
        'customers/demo/edit',
        'customers/demo/close',
        'channels-new',
        'charges/1',
        'keys/check',
        'nowhere',
      ];
      const faults: string[] = [];
      // Colours are all that differs in the dark.
      const paths =
        colorScheme === 'light'
          ? [...sections, ...more, 'versions/diff', 'requests?account=demo']
          : ['', 'customers', 'channels', 'charges/1', 'customers/demo'];
      for (const path of paths) {
        await page.goto(base + path);
        for (const fault of await accessFaults(page)) faults.push(`${path}: ${fault}`);
      }
      expect(faults).toEqual([]);
      expect(complaints.filter((each) => !each.includes('404'))).toEqual([]);
    },
  );

  it('is used by keyboard alone: skips to the content, sorts a table, goes through a form', async () => {
    const { page } = await openPage(browser);
    await page.goto((await openConsole()).address);
    const base = page.url();
    await page.goto(`${base}customers`);
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').innerText()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(page.url()).toMatch(/customers#content$/);
    expect(await page.locator(':focus').getAttribute('id')).toBe('content');
    await page.getByRole('button', { name: 'Balance' }).focus();
    await page.keyboard.press('Enter');
    expect(await page.locator('th[aria-sort]').innerText()).toMatch(/^Balance/);
    await page.goto(`${base}customers/demo/grant`);
    await page.getByLabel('Amount, yuan').focus();
    await page.keyboard.type('1');
    await page.keyboard.press('Enter');
    expect(await page.locator('.question').innerText()).toBe('Grant 1 yuan to account demo?');
  });

  it('says what to do next where there is nothing yet', async () => {
    const { page } = await openPage(browser);
    await page.goto((await openConsole({ readOnly: true })).address);
    const base = page.url();
    for (const path of [
      'requests',
      'statements',
      'customers?name=nobody',
      'keys?text=nobody',
      'requests?account=nobody',
    ]) {
      await page.goto(base + path);
      expect([path, await page.locator('.empty .empty-title').count()]).toEqual([path, 1]);
    }
  });
});
