import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ListTablesCommand } from '@aws-sdk/client-dynamodb';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { clientStack, type ClientStack } from '../client/client-stack.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { emulatorClient } from '../support/emulator.ts';

let stack: Omit<ClientStack, 'stop'>;
let browser: Browser;
let address: string;

beforeAll(async () => {
  [stack, browser] = await Promise.all([clientStack(), startBrowser()]);
  address = stack.baseUrl.replace(/\/v1$/, '');
});
afterAll(() => browser.close());

it('the page of models links to the account page, through the distribution', async () => {
  const { page, complaints } = await openPage(browser);
  await page.goto(address);
  await page.getByRole('searchbox').fill('demo');
  expect(await page.getByRole('rowheader', { name: 'demo-chat' }).isVisible()).toBe(true);
  await page.getByRole('link', { name: 'Account', exact: true }).click();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  expect(page.url()).toBe(`${address}/account`);
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('a link with a key in its fragment opens the account, and a question shows its cost', async () => {
  const { page } = await openPage(browser);
  await page.goto(`${address}/account#${stack.key}`);
  await page.getByText('Available balance').waitFor();
  expect(page.url()).toBe(`${address}/account`);
  await page.getByLabel('Model', { exact: true }).fill('demo-chat');
  await page.getByLabel('Message').fill('Hello');
  await page.keyboard.press('Enter');
  const said = page.locator('.turn.model .meta');
  await expect.poll(() => said.innerText(), { timeout: 20_000 }).toMatch(/^Cost ¥\d/);
  const id = /Request (\w+)/.exec(await said.innerText())?.[1] ?? '';
  await page.locator('#rows').getByText(id).waitFor();
  expect(await page.locator('.turn.model > .text').innerText()).not.toBe('');
  expect(stack.log()).not.toContain(stack.key);
  await page.context().close();
});

it('tools can read tables, but a page of another site or a name that resolves to this machine cannot', async () => {
  const site = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(''),
  );
  await new Promise<void>((listening) => site.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void site.close());
  const { page } = await openPage(browser);
  const tables = stack.dynamodbEndpoint;
  const list = async (of: string): Promise<string> => {
    const headers = {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'DynamoDB_20120810.ListTables',
      authorization: 'AWS4-HMAC-SHA256 Credential=local/20261123/us-east-1/dynamodb/aws4_request',
    };
    const sent = page.evaluate(async ([url, init]) => (await fetch(url, init)).text(), [
      of,
      { method: 'POST', headers, body: '{}' },
    ] as const);
    return sent.catch((error: unknown) => String(error));
  };
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}`);
  expect(await list(tables)).toContain('Failed to fetch');
  // Chromium resolves names below localhost to this machine, as a hostile name server would other names.
  const rebound = tables.replace('127.0.0.1', 'site.localhost');
  await page.route(`${rebound}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '' }));
  await page.goto(`${rebound}/page`);
  expect(await list(rebound)).toContain('AccessDeniedException');
  await page.context().close();
  const { TableNames } = await emulatorClient(tables).send(new ListTablesCommand());
  expect(TableNames).toContain('relay-keys');
});
