import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { generateHex } from '../../shared/adapters/system/node-ports.ts';
import { codeBytes, formatCode, hashCode } from '../../shared/config/rows/code-row.ts';
import { defaultSettings } from '../../shared/config/settings.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { accessFaults } from '../support/browser.ts';
import { ManagedRig } from '../unit/relay/account/managed-rig.ts';
import { looksSound, pagesRig } from './pages-rig.ts';
import { pageKey } from './pages-server.ts';

/** The function `selfservice` itself, on an emulator, behind the pages. */
let rig: ManagedRig;
let made = 0;
beforeAll(async () => {
  rig = await ManagedRig.start();
});
afterAll(() => rig.stop());

const { server, open } = pagesRig((each) => {
  each.key = { manage: true };
  each.instead = ({ method, url, body }, response) => {
    if (!/^\/v1\/account\/(keys|top-ups|codes)/.test(url)) return false;
    void rig.send(method, url, pageKey, body).then((answer) => {
      response.writeHead(answer.status, answer.headers).end(JSON.stringify(answer.body));
    });
    return true;
  };
});

beforeEach(async () => {
  rig.settings = { ...defaultSettings };
  const account = `acme-${(made += 1)}`;
  await rig.put('accounts', { account });
  await rig.put('keys', { hash: keyHash(pageKey), hint: 'sk-page...0001', account, manage: true, rpm: 60 });
});

const items = (page: Page) => page.locator('#key-list > li');
async function opened(options = {}) {
  const shown = await open(`/account#${pageKey}`, options);
  await items(shown.page).first().waitFor();
  return shown;
}
async function makeKey(page: Page, name: string): Promise<string> {
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name: who').fill(name);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('#made').waitFor();
  return page.locator('#made-key').innerText();
}

/** The text of the page's questions. */
function answerDialogs(page: Page, by: 'accept' | 'dismiss' = 'accept'): string[] {
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.message());
    void dialog[by]();
  });
  return asked;
}

describe('keys that customers create', () => {
  looksSound(async (options) => {
    rig.payments();
    if (rig.settings.payments?.stripe.checkout) rig.settings.payments.stripe.checkout.plans = [2];
    rig.settings.subscriptionEnabled = true;
    rig.plans = [{ level: 2, price: 30, items: [] }];
    await rig.create(pageKey, {
      name: '前端 web',
      models: ['gpt-4o', 'qwen-max'],
      expires_at: 1_893_456_000,
    });
    const shown = await opened(options);
    await shown.page.locator('#new-key').click();
    await shown.page.locator('#top-up').waitFor();
    await shown.page.locator('#buy-plans button').waitFor();
    return shown;
  });

  it('are shown once when they are created, and then by name, state and limits', async () => {
    const { page, complaints } = await opened();
    await page.getByText('You have not created any keys yet.').waitFor();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name: who').fill('<b>shop</b>');
    await page.getByLabel('Models, separated').fill('gpt-4o, qwen-max');
    await page.getByLabel('Budget (¥)').fill('12.5');
    await page.getByLabel('Budget period').selectOption('day');
    await page.getByLabel('Concurrent calls').last().fill('3');
    await page.getByLabel('Last valid day').fill('2999-12-31');
    await page.keyboard.press('Enter');
    await page.locator('#made').waitFor();
    const secret = await page.locator('#made-key').innerText();
    expect(await rig.rowOf(secret)).toMatchObject({ name: '<b>shop</b>', models: ['gpt-4o', 'qwen-max'] });
    await expect.poll(() => items(page).count()).toBe(2);
    expect(await items(page).nth(1).innerText()).toMatch(
      /<b>shop<\/b>\s+active\s+sk-\S+ gpt-4o, qwen-max · ¥12\.50 per day · 60 calls per minute · 3 concurrent calls · until/,
    );
    // The operator's key is shown, but cannot be changed.
    expect(await items(page).nth(0).getByRole('button').count()).toBe(0);
    expect(await accessFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(secret);
    expect(complaints).toEqual([]);
  });

  it('change only in edited fields, and show the relay’s errors', async () => {
    const { page } = await opened();
    const secret = await makeKey(page, 'shop');
    await page.getByRole('button', { name: 'Edit shop' }).click();
    // Changed by somebody else in between.
    const { id } = (await rig.list(pageKey)).body.data[1]!;
    await rig.edit(pageKey, id, { max_concurrency: 7 });
    await page.getByLabel('Calls per minute').last().fill('30');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#key-form').waitFor({ state: 'hidden' });
    expect(await rig.rowOf(secret)).toMatchObject({ rpm: 30, max_concurrency: 7, name: 'shop' });
    await page.getByRole('button', { name: 'Edit shop' }).click();
    await page.getByLabel('Calls per minute').last().fill('61');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('#keys-state.wrong').waitFor();
    expect(await page.locator('#key-form').isVisible()).toBe(true);
    expect(await rig.rowOf(secret)).toMatchObject({ rpm: 30 });
  });

  it('are replaced and revoked after a confirmation', async () => {
    const { page } = await opened();
    const first = await makeKey(page, 'shop');
    page.once('dialog', (dialog) => void dialog.dismiss());
    await page.getByRole('button', { name: 'Revoke shop' }).click();
    // An empty field is not a number of hours: the old key must not expire at once.
    for (const nothing of ['', ' ', 'soon']) {
      page.once('dialog', (dialog) => void dialog.accept(nothing));
      await page.getByRole('button', { name: 'Replace shop' }).click();
      await page.locator('#keys-state.wrong').getByText('grace_hours').waitFor();
      await page.locator('#keys-state').evaluate((state) => (state.textContent = ''));
    }
    expect(await rig.rowOf(first)).not.toHaveProperty('expires_at');
    page.once('dialog', (dialog) => void dialog.accept('0'));
    await page.getByRole('button', { name: 'Replace shop' }).click();
    await expect.poll(() => page.locator('#made-key').innerText()).not.toBe(first);
    const second = await page.locator('#made-key').innerText();
    await expect.poll(() => page.locator('#keys-state').innerText()).toBe('Done');
    expect(await rig.rowOf(second)).toMatchObject({ name: 'shop' });
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Revoke shop' }).last().click();
    await expect.poll(async () => (await rig.rowOf(second))['enabled']).toBe(false);
  });

  it('that cannot be read are replaced by an error, not by an empty section', async () => {
    const { instead } = server;
    server.instead = (request, response) => {
      if (request.url !== '/v1/account/keys') return instead(request, response);
      response.writeHead(503).end(JSON.stringify({ error: { message: 'The store is away.' } }));
      return true;
    };
    const { page } = await open(`/account#${pageKey}`);
    const said = page.locator('#keys-state.wrong').getByText('The store is away.');
    await said.waitFor();
    expect(await said.isVisible()).toBe(true);
  });

  it('are not offered or requested with a key that lacks the right', async () => {
    server.key = {};
    const { page } = await open(`/account#${pageKey}`);
    await page.locator('#figures .card').first().waitFor();
    await page.locator('#ledger-state').getByText('No calls yet').waitFor();
    expect(
      await page.locator('#keys, #top-up').evaluateAll((all) => all.map((each) => each.checkVisibility())),
    ).toEqual([false, false]);
    expect(server.seen.filter(({ url }) => url.includes('/keys'))).toEqual([]);
  });
});

describe('a redeem code', () => {
  it('is redeemed by a key without the right to manage keys after naming the account, and a rejection is shown', async () => {
    const code = formatCode(generateHex(codeBytes));
    await rig.put('codes', { hash: hashCode(code), batch: 'spring', amount: 12.5 });
    server.key = { account: `acme-${made}` };
    const { page, complaints } = await open(`/account#${pageKey}`);
    await page.getByText('Redeem a code').click();
    await page.getByRole('textbox', { name: 'Redeem a code' }).fill(code.toLowerCase().replaceAll('-', ' '));
    const asked = answerDialogs(page);
    await page.getByRole('button', { name: 'Redeem' }).click();
    await page.getByText('¥12.50 added').waitFor();
    expect(asked).toEqual([expect.stringContaining(`acme-${made}`)]);
    const grants = await rig.rows('grants');
    expect(grants.filter((row) => row['account'] === `acme-${made}`)).toMatchObject([{ amount: 12.5 }]);
    expect(complaints).toEqual([]);
    await page.getByRole('textbox', { name: 'Redeem a code' }).fill('no such code');
    await page.getByRole('button', { name: 'Redeem' }).click();
    await page.locator('#redeem-state.wrong').getByText('This code does not exist').waitFor();
    expect(await accessFaults(page)).toEqual([]);
  });
});

describe('a top-up', () => {
  it('redirects to the address from the relay, and promises nothing on return', async () => {
    rig.settings = { ...rig.settings, topUpUrl: 'https://shop.example/{account}' };
    const { page } = await opened();
    await page.route('https://shop.example/**', (route) => route.fulfill({ body: 'the shop' }));
    await page.getByLabel('Top up').fill('20.5');
    answerDialogs(page);
    await page.getByRole('button', { name: 'Pay' }).click();
    await page.waitForURL(`https://shop.example/acme-${made}`);
    const back = await open('/account?top_up=done');
    await back.page.getByText('Your purchase is added when the payment arrives').waitFor();
    expect(await accessFaults(back.page)).toEqual([]);
    await back.page.goto(`${server.address}/account?top_up=<b>`);
    await back.page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await back.page.locator('#payment').isVisible()).toBe(false);
  });

  it('from a link names the account that it pays for, and starts no payment unless the customer agrees', async () => {
    rig.settings = { ...rig.settings, topUpUrl: 'https://shop.example/{account}' };
    server.key = { manage: true, account: `acme-${made}` };
    const { page } = await opened();
    expect(await page.locator('#whose').innerText()).toBe(`acme-${made}`);
    const asked = answerDialogs(page, 'dismiss');
    await page.getByRole('button', { name: 'Pay' }).click();
    await expect.poll(() => asked).toEqual([expect.stringMatching(new RegExp(`50.*acme-${made}\\b`))]);
    expect(server.seen.filter(({ method, url }) => method === 'POST' && url.endsWith('/top-ups'))).toEqual(
      [],
    );
  });

  it('through Stripe is created by the relay for the amount that the customer enters', async () => {
    rig.settings.topUpBonus = [
      { pay: 100, get: 110 },
      { pay: 500, get: 580 },
    ];
    rig.payments();
    rig.stripe.answer = (form) => ({
      session: {
        url: 'https://checkout.stripe.example/c/1',
        livemode: false,
        client_reference_id: form.get('client_reference_id'),
      },
    });
    const { page } = await opened();
    await page.route('https://checkout.stripe.example/**', (route) => route.fulfill({ body: 'pay here' }));
    await page.getByText('Pay ¥100.00, get ¥110.00 · Pay ¥500.00, get ¥580.00').waitFor();
    await page.getByLabel('Top up').fill('20.5');
    answerDialogs(page);
    await page.getByRole('button', { name: 'Pay' }).click();
    await page.waitForURL('https://checkout.stripe.example/c/1');
    expect(rig.stripe.asked.at(-1)?.form.toString()).toContain('2050');
  });

  it('that the relay rejects shows the error, and is hidden if the operator offers none', async () => {
    const { page } = await opened();
    expect(await page.locator('#top-up').isVisible()).toBe(false);
    rig.payments();
    rig.stripe.answer = () => ({ status: 500, session: {} });
    await page.locator('#language').click();
    await page.locator('#top-up').waitFor();
    answerDialogs(page);
    await page.locator('#top-up button').click();
    await page.locator('#top-up-state.wrong').waitFor();
  });
});

describe('an automatic top-up', () => {
  it('redirects to Stripe for the first payment, then shows its state, and is disabled by a button', async () => {
    rig.payments();
    rig.stripe.answer = (form) => ({
      session: {
        url: 'https://checkout.stripe.example/c/1',
        livemode: false,
        client_reference_id: form.get('client_reference_id'),
      },
    });
    const { page, complaints } = await opened();
    await page.route('https://checkout.stripe.example/**', (route) => route.fulfill({ body: 'pay here' }));
    answerDialogs(page);
    await page.getByLabel('When the balance is below').fill('30');
    await page.getByLabel('charge my card').fill('60');
    await page.getByLabel('at most per month').fill('300');
    await page.getByRole('button', { name: 'Store card' }).click();
    await page.waitForURL('https://checkout.stripe.example/c/1');
    expect(rig.stripe.asked.at(-1)?.form.get('payment_intent_data[setup_future_usage]')).toBe('off_session');

    const account = `acme-${made}`;
    const terms = { below: 3_000, amount: 6_000, monthly: 30_000 };
    const card = { customer: 'cus_1', method: 'pm_1' };
    const id = `auto-top-up#${account}`;
    await rig.put('runtime', { id, account, version: 2, terms, card, month: '2026-11', charged: 6_000 });
    const again = await opened();
    await again.page.getByText('Automatic top-ups are on. Charged in 2026-11: ¥60.00.').waitFor();
    expect(await accessFaults(again.page)).toEqual([]);
    await again.page.getByRole('button', { name: 'Turn off' }).click();
    await expect.poll(() => again.page.locator('#auto-off').isVisible()).toBe(false);
    expect((await rig.rows('runtime')).find((row) => row['id'] === id)).not.toHaveProperty('card');

    await rig.put('runtime', { id, account, version: 9, month: '2026-11', charged: 6_000, off: 'declined' });
    await again.page.locator('#language').click();
    await again.page.locator('#language').click();
    await again.page.getByText('Automatic top-ups were turned off (declined).').waitFor();
    expect(complaints).toEqual([]);
  });
});

it('a button that shows the price buys a month of a plan', async () => {
  rig.payments();
  if (rig.settings.payments?.stripe.checkout) rig.settings.payments.stripe.checkout.plans = [2];
  rig.settings.subscriptionEnabled = true;
  rig.plans = [{ level: 2, price: 30, items: [] }];
  rig.stripe.answer = (form) => ({
    session: {
      url: 'https://checkout.stripe.example/c/1',
      livemode: false,
      client_reference_id: form.get('client_reference_id'),
    },
  });
  const { page } = await opened();
  await page.route('https://checkout.stripe.example/**', (route) => route.fulfill({ body: 'pay here' }));
  answerDialogs(page);
  await page.getByRole('button', { name: 'Buy plan 2: ¥30.00 for a month' }).click();
  await page.waitForURL('https://checkout.stripe.example/c/1');
  expect(rig.stripe.asked.at(-1)?.form.get('client_reference_id')).toMatch(/^p2-/);
});
