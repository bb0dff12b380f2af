import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPage, startBrowser } from '../support/browser.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';

let stack: LocalStack;
let browser: Browser;
let address: string;

beforeAll(async () => {
  [stack, browser] = await Promise.all([startLocalStack(), startBrowser()]);
  address = stack.baseUrl.replace(/\/v1$/, '');
});
afterAll(async () => {
  await browser.close();
  await stack.stop();
});

it('the page of models leads to the account, through the distribution', async () => {
  const { page, complaints } = await openPage(browser);
  await page.goto(address);
  await page.getByRole('searchbox').fill('demo');
  expect(await page.getByRole('rowheader', { name: 'demo-chat' }).isVisible()).toBe(true);
  await page.getByRole('link', { name: 'Account', exact: true }).click();
  await page.getByRole('button', { name: 'Open' }).waitFor();
  expect(page.url()).toBe(`${address}/account`);
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('a link with a key in its fragment opens the account, and a question shows what it cost', async () => {
  const { page } = await openPage(browser);
  await page.goto(`${address}/account#${stack.key}`);
  await page.getByText('Available').waitFor();
  expect(page.url()).toBe(`${address}/account`);
  await page.getByLabel('Model', { exact: true }).fill('demo-chat');
  await page.getByLabel('Message').fill('Hello');
  await page.keyboard.press('Enter');
  const said = page.locator('.turn.model .meta');
  await expect.poll(() => said.innerText(), { timeout: 20_000 }).toMatch(/^Cost ¥\d/);
  const id = /Request (\w+)/.exec(await said.innerText())?.[1] ?? '';
  await page.locator('#rows').getByText(id).waitFor();
  expect(await page.locator('.turn.model > .text').innerText()).not.toBe('');
  expect(stack.stderr()).not.toContain(stack.key);
  await page.context().close();
});
