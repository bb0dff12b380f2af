/** What only a browser can test: pages without script, by keyboard, with a screen reader, in light and dark. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { serveConsole, type ServedConsole } from '../../infra/ops/console/serve.ts';
import { openSession } from '../../infra/ops/session/session.ts';
import {
  accessFaults,
  clickControl,
  findControl,
  loadAxe,
  openPage,
  startBrowser,
} from '../support/browser.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';

let stack: LocalStack;
let browser: Browser;
let served: ServedConsole;
beforeAll(async () => {
  [stack, browser] = await Promise.all([startLocalStack(), startBrowser()]);
});
afterAll(async () => {
  served?.stop();
  await browser.close();
  await stack.stop();
});
// Live pages would keep sending requests.
afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));

/** Opens a console of its own, since its address works once. */
async function opened(options: Parameters<typeof openPage>[1] = {}) {
  served?.stop();
  const target = { stack: 'relay', endpoint: stack.dynamodbEndpoint, local: true };
  const { ports } = await openSession(target, {});
  const onFault = (error: unknown): never => {
    throw error;
  };
  const where = 'relay, local tables';
  served = await serveConsole(ports, { readOnly: false, port: 0, where, name: 'local', onFault });
  const made = await openPage(browser, options);
  await made.page.goto(served.address);
  return { ...made, base: made.page.url() };
}

const call = (key: string): Promise<Response> =>
  fetch(`${stack.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo-chat', messages: [{ role: 'user', content: 'hello' }] }),
  });

const within = { timeout: 10_000 };

const textOf = (page: Page, selector: string) =>
  page.evaluate<string>(`document.querySelector('${selector}').innerText`);
const main = (page: Page) => textOf(page, 'main');
const count = (page: Page, selector: string) =>
  page.evaluate<number>(`document.querySelectorAll('${selector}').length`);
const focusedId = (page: Page) => page.evaluate<string>('document.activeElement.id');
const valueOf = (page: Page, name: string) =>
  page.evaluate<string>(`document.querySelector('main [name="${name}"]').value`);

async function type(page: Page, text: string, selector: string, name?: string): Promise<void> {
  await findControl(page, selector, name);
  await page.keyboard.insertText(text);
}

/** Clicks what leads to another page, and waits for that page. */
async function press(page: Page, selector: string, name?: string): Promise<void> {
  const loaded = page.waitForEvent('load');
  await clickControl(page, selector, name);
  await loaded;
}

/** Reloads a page until it contains these words. Functions write within seconds. */
async function untilSaid(page: Page, words: RegExp): Promise<void> {
  const read = async () => (await page.request.get(page.url())).text();
  await expect.poll(read, { timeout: 15_000, interval: 300 }).toMatch(words);
  await page.reload();
  expect(await main(page)).toMatch(words);
}

it('creates a customer and a key without any script, and calls with the key', async () => {
  const { page, base } = await opened({ javaScriptEnabled: false });
  await press(page, 'a', 'Customers');
  await press(page, 'a', 'New customer');
  await type(page, 'walker', 'input', 'Name');
  await type(page, 'fifty', 'input', 'Amount (¥)');
  await press(page, 'button', 'Continue');
  expect(await textOf(page, '#amount-error')).toMatch(/expected/);
  await expect.poll(() => focusedId(page), within).toBe('field-amount');
  expect(await valueOf(page, 'account')).toBe('walker');

  await type(page, '50', 'input', 'Amount (¥)');
  await press(page, 'button', 'Continue');
  expect(await main(page)).toMatch(/customer walker[^]*¥50[^]*key[^]*\?/i);
  // The input is kept, to be changed once more.
  await press(page, 'a', 'Edit');
  expect(await valueOf(page, 'account')).toBe('walker');
  await type(page, 'met at the fair', 'input', 'Note');
  await clickControl(page, 'input', 'Include a link with the key in the message');
  await press(page, 'button', 'Continue');
  await press(page, 'button', 'Create customer');
  // The page reloads itself until the grant is applied.
  await expect.poll(() => main(page), within).toMatch(/Created customer walker/);
  const key = (await textOf(page, '[data-secret]')).trim();
  expect(key).toMatch(/^sk-\S{40,}$/);
  expect(await textOf(page, 'pre.command')).toMatch(
    new RegExp(`Your account walker is ready[^]*API key:  ${key}[^]*/account#${key}`),
  );
  await page.reload();
  expect(await page.content()).not.toContain(key);
  await expect.poll(async () => (await call(key)).status, { timeout: 15_000 }).toBe(200);

  await page.goto(`${base}customers/walker`);
  await untilSaid(page, /demo-chat/);
  expect(await page.content()).not.toContain(key);
  expect(await main(page)).toContain('met at the fair');
  expect(await count(page, 'figure.plot svg')).toBe(2);
  await press(page, 'a', 'Statement');
  expect(await textOf(page, '.tiles')).toMatch(
    /Opening balance\s+¥0\.00\s[^]*Top-ups and corrections\s+¥50\.00\s[^]*Charged\s+¥0\.000042\s+1 call\s[^]*Balance now\s+¥49\.999958\s+exact/,
  );
});

it('sends no full key in the address of a search', async () => {
  const { page } = await opened();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await type(page, `sk-${'a'.repeat(48)}`, '[type=search]', 'Search everything');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/find?q=sk-aaaa...aaaa');
  expect(asked.filter((url) => url.includes('aaaaaa'))).toEqual([]);
});

const lightPaths = [
  '',
  'customers',
  'customers/demo',
  'customers/demo/grant',
  'channels',
  'channels-new',
].concat(
  ['charges/1', 'keys', 'requests', 'requests?account=demo', 'ledger?account=demo', 'statements'],
  ['versions/diff', 'settings', 'settings/notices', 'settings/plans/1', 'charges-csv', 'charges-import'],
  ['audit', 'nowhere'],
);
/** One page for each kind of part; dark mode differs only in colours. */
const darkPaths = new Set(['', 'customers', 'channels', 'charges/1', 'customers/demo', 'requests']);

it('passes axe on every page in light mode, and with each kind of part in dark mode', async () => {
  const { page, complaints, base } = await opened();
  await loadAxe(page);
  expect((await call(stack.key)).status).toBe(200);
  await untilSaid(page, /demo-chat/);
  expect(await count(page, 'figure.plot svg')).toBe(3);
  const faults: string[] = [];
  for (const path of lightPaths) {
    await page.goto(base + path);
    for (const colorScheme of darkPaths.has(path) ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme });
      const looked = colorScheme === 'dark' ? { rules: ['color-contrast', 'link-in-text-block'] } : {};
      for (const fault of await accessFaults(page, looked)) faults.push(`${path}, ${colorScheme}: ${fault}`);
    }
  }
  expect(faults).toEqual([]);
  expect(complaints.filter((each) => !each.includes('404'))).toEqual([]);
}, 60_000);

const readForm = `({
  errors: document.querySelectorAll('p.error').length,
  focused: document.activeElement.name,
  typed: Object.fromEntries([...document.querySelectorAll('main [name]')].map(({ name, value }) => [name, value])),
})`;
const readOutcome = `({
  done: document.querySelectorAll('.notice.good[role=status]').length,
  alerts: document.querySelectorAll('[role=alert]').length,
})`;

interface FormWalk {
  path: string;
  /** First input: an invalid value in one field, which gets the error, while the other input stays. */
  wrong: readonly [name: string, text: string];
  fields: Readonly<Record<string, string>>;
  /** Text of the confirmation page. */
  asks: RegExp;
  verb: string;
  /** The page that then shows the row, and the expected words. */
  seen: readonly [path: string, words: RegExp];
}

/** One form with plain fields, one with rows of fields, and one with choices. test/console/forms.test.ts walks the others without a browser. */
const formWalks: readonly FormWalk[] = [
  {
    path: 'customers/demo/keys/new',
    wrong: ['rpm', 'many'],
    fields: { name: 'walked key', models: 'demo-chat', rpm: '60', 'budget.amount': '5', expires_at: '30d' },
    asks: /demo-chat[^]* UTC[^]*60[^]*5/,
    verb: 'Create key',
    seen: ['keys?text=demo', /walked key\s+active/],
  },
  {
    path: 'settings/notices',
    wrong: ['value.0.from', 'someday'],
    fields: {
      'value.0.text': 'walked notice',
      'value.0.from': 'tomorrow 14:00',
      // Later than tomorrow on every weekday.
      'value.0.until': '9d',
    },
    asks: /walked notice[^]*14:00 UTC/,
    verb: 'Save',
    seen: ['settings', /walked notice/],
  },
  {
    path: 'channels-new?type=bedrock',
    wrong: ['region', 'over there'],
    fields: { id: 'walked-bedrock', models: 'walked-two', region: 'us-west-2', state: 'off' },
    asks: /After[^]*us-west-2/,
    verb: 'Save',
    seen: ['channels/walked-bedrock', /disabled/],
  },
];

it('a form moves the focus to the field with an invalid value, keeps the other input, shows a preview, and its row is listed once confirmed', async () => {
  const { page, base, complaints } = await opened();
  const fill = async (name: string, text: string): Promise<void> => {
    const choice = `document.querySelector('main select[name="${name}"]')`;
    const isChoice = await page.evaluate<boolean>(`${choice} !== null`);
    const choose = `Object.assign(${choice}, { value: ${JSON.stringify(text)} }).dispatchEvent(new Event('change', { bubbles: true }))`;
    if (isChoice) await page.evaluate(choose);
    else await type(page, text, `main [name="${name}"]`);
  };
  const send = () => press(page, 'form.stacked > .buttons .main');
  for (const { path, wrong, fields, asks, verb, seen } of formWalks) {
    await page.goto(base + path);
    for (const [name, text] of Object.entries(fields)) await fill(name, text);
    await fill(...wrong);
    await send();
    // The field gets the focus after the page has loaded.
    await expect
      .poll(async () => ({ path, ...(await page.evaluate<object>(readForm)) }), within)
      .toMatchObject({ path, errors: 1, focused: wrong[0], typed: { ...fields, [wrong[0]]: wrong[1] } });
    await fill(wrong[0], fields[wrong[0]] ?? '');
    await send();
    expect(await main(page)).toMatch(asks);
    await press(page, 'button', verb);
    await expect
      .poll(async () => ({ path, ...(await page.evaluate<object>(readOutcome)) }), within)
      .toEqual({ path, done: 1, alerts: 0 });
    await page.goto(base + seen[0]);
    expect(await main(page)).toMatch(seen[1]);
  }
  // The changes of a version, one line each, and its rollback.
  await page.goto(`${base}versions`);
  await press(page, 'main td a[href^="versions/diff?from="]');
  expect(await main(page)).toMatch(/(Channel|Rule|Plan|Setting) \S+( \(new\))?\s+\w/);
  await press(page, '[action$="/rollback"] button');
  expect(await count(page, '.question')).toBe(1);
  expect(complaints.filter((each) => !each.includes('422'))).toEqual([]);
}, 60_000);

it('works with only the keyboard: skips to the content, sorts a table, completes a form', async () => {
  const { page, base } = await opened();
  await page.goto(`${base}customers`);
  await page.keyboard.press('Tab');
  expect(await textOf(page, ':focus')).toBe('Skip to content');
  await page.keyboard.press('Enter');
  expect(page.url()).toMatch(/customers#content$/);
  expect(await focusedId(page)).toBe('content');
  await findControl(page, 'button', 'Balance');
  await page.keyboard.press('Enter');
  expect(await textOf(page, 'th[aria-sort]')).toMatch(/^Balance/);
  await page.goto(`${base}customers/demo/grant`);
  await findControl(page, 'input', 'Amount (¥)');
  await page.keyboard.type('1');
  const loaded = page.waitForEvent('load');
  await page.keyboard.press('Enter');
  await loaded;
  expect(await textOf(page, '.question')).toMatch(/¥1\.00 .*demo/);
});

it('shows requests as they end, including refused ones, each with its explanation; sends nothing while paused, and is a list without script', async () => {
  const { page, complaints, base } = await opened();
  await page.goto(`${base}requests`);
  expect(await textOf(page, '[role=status]')).toBe('Live');
  const rows = '#requests-rows tr';
  const atFirst = await count(page, rows);
  expect((await call('sk-nobodys')).status).toBe(401);
  expect((await call(stack.key)).status).toBe(200);
  await expect.poll(() => count(page, rows), within).toBe(atFirst + 2);
  expect(await textOf(page, rows)).toMatch(/200[^]*demo-chat/);
  expect(await textOf(page, `${rows}:nth-child(2)`)).toMatch(/401\s+invalid_api_key/);
  expect(await textOf(page, '.tiles')).toMatch(/Refused\s+1\s/);

  // A second page shows how long nothing arrived, because the first one sends no requests.
  await clickControl(page, 'button', 'Pause');
  const before = await count(page, rows);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  expect((await call(stack.key)).status).toBe(200);
  const plain = await opened({ javaScriptEnabled: false });
  expect(await textOf(plain.page, '#overview-refused')).toMatch(/invalid_api_key\s+1/);
  await plain.page.goto(`${plain.base}requests?status=401`);
  expect(await count(plain.page, rows)).toBe(1);
  expect(await main(plain.page)).not.toContain('Watch live');
  await press(plain.page, '#requests-rows a');
  expect(await main(plain.page)).toMatch(/Next step:[^]*key check[^]*What happened/);
  expect([await count(page, rows), asked]).toEqual([before, []]);
  expect(complaints).toEqual([]);
});

it('reads a sheet from a spreadsheet’s file, and does not send one that is larger than a form', async () => {
  const { page, base, complaints } = await opened();
  await page.goto(`${base}channels/demo/invoice`);
  const area = page.getByLabel('Invoice (CSV)');
  const choose = (buffer: Buffer) =>
    page.getByLabel('Or choose a file').setInputFiles({ name: 'a.csv', mimeType: 'text/csv', buffer });
  // 模型,金额 in GB 18030.
  const gb = [0xc4, 0xa3, 0xd0, 0xcd, 0x2c, 0xbd, 0xf0, 0xb6, 0xee, 0x0a, 0x61, 0x2c, 0x33];
  for (const [bytes, text] of [
    [Buffer.from('Model,Amount\r\nm,3'), 'Model,Amount\nm,3'],
    [Buffer.from('\uFEFFModel\tAmount\nm\t3', 'utf16le'), 'Model\tAmount\nm\t3'],
    [Buffer.from(gb), '模型,金额\na,3'],
  ] as const) {
    await choose(bytes);
    await expect.poll(() => area.inputValue(), within).toBe(text);
  }
  await choose(Buffer.alloc(300_000, `a-model-of-the-vendor,3.${'0'.repeat(60)}\n`));
  const complaint = () =>
    area.evaluate((field) => (field as unknown as { validationMessage: string }).validationMessage);
  await expect.poll(complaint, within).toContain('256 KB');
  const at = page.url();
  await page.getByLabel('Month (UTC)').fill('2026-10');
  await page.getByRole('button', { name: 'Compare' }).click();
  expect([page.url(), await page.locator('p.error').count()]).toEqual([at, 0]);
  await area.fill('Model,Amount\nm,3');
  expect(await complaint()).toBe('');
  await press(page, 'button', 'Compare');
  expect(await main(page)).toMatch(
    /channel demo had no calls in 2026-10[^]*m\s+0\s+−\s+¥3\.00\s+¥3\.00\s+−\s+the invoice/,
  );
  expect(complaints).toEqual([]);
});
