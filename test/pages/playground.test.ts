import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { accessFaults } from '../support/browser.ts';
import { pagesRig } from './pages-rig.ts';
import { dayUsage, pageKey, usageRow } from './pages-server.ts';

const callId = '01m81b5hbv5v6x8y9z0a1b2c3d';
const { server, open } = pagesRig((each) => (each.snapshot = { models: ['alpha', 'beta'] }));

const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

type Delta = Record<string, unknown>;

/** Answers with chunks of an answer, each in its own write; then the test continues the response. */
function streams(...deltas: (string | Delta)[]): void {
  server.chat = (_request, response) => {
    begin(response);
    for (const delta of deltas) write(response, typeof delta === 'string' ? { content: delta } : delta);
    response.write(
      `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 12, completion_tokens: 3 } })}\n\n`,
    );
    response.end('data: [DONE]\n\n');
  };
}

const begin = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': callId });
const write = (response: ServerResponse, delta: Delta): boolean =>
  response.write(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`);

function refuse(response: ServerResponse): void {
  response
    .writeHead(402, { 'content-type': 'application/json', 'x-request-id': 'req-1' })
    .end('{"error":{"message":"Not enough balance."}}');
}
const ends = (event: string) => (response: ServerResponse) => void begin(response).end(`data: ${event}\n\n`);

async function opened(): Promise<{ page: Page; complaints: string[] }> {
  const made = await open(`/account#${pageKey}`);
  await expect.poll(() => made.page.getByLabel('Model', { exact: true }).inputValue()).toBe('alpha');
  return made;
}

async function ask(page: Page, text = 'Hello'): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.keyboard.press('Enter');
}

const answer = (page: Page) => page.locator('.turn.model').last();
const meta = (page: Page) => answer(page).locator('.meta').innerText();
const asked = (): Record<string, unknown>[] =>
  server.seen
    .filter(({ url }) => url === '/v1/chat/completions')
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>);

describe('the field of the model', () => {
  it('suggests one, but not while the user is typing another', async () => {
    const { page } = await open(undefined);
    const listed = Promise.withResolvers<void>();
    await page.route('**/v1/models', async (route) => {
      await listed.promise;
      await route.continue();
    });
    await page.goto(`${server.address}/account#${pageKey}`);
    const model = page.getByLabel('Model', { exact: true });
    await model.waitFor();
    await model.focus();
    listed.resolve();
    await page.locator('#names option').first().waitFor({ state: 'attached' });
    await page.keyboard.type('beta');
    expect(await model.inputValue()).toBe('beta');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete');
    await page.getByLabel('Message').focus();
    expect(await model.inputValue()).toBe('alpha');
  });
});

describe('a question', () => {
  it('streams, keeps the conversation, and shows its cost once the ledger has it', async () => {
    streams({ reasoning_content: 'Let me see.' }, 'Hel', 'lo');
    const { page } = await opened();
    await ask(page);
    await answer(page).getByText('12 tokens in, 3 out').waitFor();
    expect(await answer(page).locator('> .text').innerText()).toBe('Hello');
    server.rows = [usageRow(callId, 0, { charge: 0.0125, model: 'alpha' })];
    server.days = [dayUsage('alpha', 0)];
    await answer(page).getByText(`Cost ¥0.0125`).waitFor();
    await page.locator('#rows').getByText(callId).waitFor();
    await expect.poll(() => page.locator('#by-model').innerText()).toContain('alpha');
    await ask(page, 'And again?');
    await expect.poll(() => asked().length).toBe(2);
    expect(asked()[1]).toMatchObject({
      model: 'alpha',
      stream: true,
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: 'And again?' },
      ],
    });
    expect(await accessFaults(page, { part: '#turns' })).toEqual([]);
  });

  it('sends a temperature and an output limit if they are given', async () => {
    streams('one');
    const { page } = await opened();
    await ask(page);
    await answer(page).getByText('one').waitFor();
    expect(asked()[0]).not.toHaveProperty('temperature');
    expect(asked()[0]).not.toHaveProperty('max_completion_tokens');
    await page.getByText('System prompt, tools').click();
    await page.getByLabel('Temperature').fill('0.25');
    await page.getByLabel('Max output tokens').fill('300');
    await askOnce(page, 'Again');
    expect(asked()[1]).toMatchObject({ temperature: 0.25, max_completion_tokens: 300 });
  });

  it('accepts pictures from files and from the clipboard, as data: URLs, and rejects other files', async () => {
    streams('A dot.');
    const { page } = await opened();
    const files = page.locator('#files');
    await files.setInputFiles({ name: 'a.svg', mimeType: 'image/svg+xml', buffer: Buffer.from('<svg/>') });
    await page.getByText('Only PNG, JPEG, WebP and GIF images').waitFor();
    await files.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') });
    await page.evaluate(`{
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob('${png}'), (c) => c.charCodeAt(0));
      data.items.add(new File([bytes], 'b.png', { type: 'image/png' }));
      document.querySelector('#prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data }));
    }`);
    await expect.poll(() => page.locator('#pictures img').count()).toBe(2);
    await page.locator('#pictures').getByRole('button', { name: 'Remove' }).first().click();
    await ask(page, 'What is it?');
    await answer(page).getByText('A dot.').waitFor();
    const url = `data:image/png;base64,${png}`;
    expect(asked()[0]?.['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url } },
          { type: 'text', text: 'What is it?' },
        ],
      },
    ]);
  });

  it('sends tools, shows their calls, and sends the results that the customer writes', async () => {
    const { page } = await opened();
    await page.getByText('System prompt, tools').click();
    await page.getByLabel('Tools').fill('{"not": "a list"}');
    await ask(page, 'Weather?');
    await page.getByText('Tools must be a JSON array').waitFor();
    expect(asked()).toEqual([]);
    const tools = [{ type: 'function', function: { name: 'weather' } }];
    await page.getByLabel('Tools').fill(JSON.stringify(tools));
    streams(
      { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '{"city":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"<b>"}' } }] },
    );
    await ask(page, 'Weather?');
    await answer(page).getByText('weather {"city":"<b>"}').waitFor();
    await page.getByText('Enter the results of the tool calls').waitFor();
    await page.getByLabel('Result of this call').fill('rain');
    streams('Rain.');
    await page.getByRole('button', { name: 'Send' }).click();
    await answer(page).getByText('Rain.').waitFor();
    const call = { name: 'weather', arguments: '{"city":"<b>"}' };
    expect(asked()[1]).toMatchObject({
      tools,
      messages: [
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: call }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
      ],
    });
  });
});

describe('the output of a model', () => {
  it('creates no element, loads nothing and runs nothing, whole or in pieces', async () => {
    const attacks = [
      '<img src=x onerror="globalThis.ran=1">',
      '<scr',
      'ipt>globalThis.ran=2</scr',
      'ipt>',
      '<sv',
      'g/onload',
      '=globalThis.ran=3>',
      '[click](javascript:globalThis.ran=4) <a href="javascript:globalThis.ran=5">here</a>',
      '![x](http://127.0.0.1:9/steal?q=1) data:text/html,<script>globalThis.ran=6</script>',
      '</div></article></main><iframe srcdoc="<script>parent.ran=7</script>">',
      '<!--',
      ']]>',
      '\u202E\u0000&lt;b&gt;',
    ];
    const call = {
      index: 0,
      id: '<b>',
      function: { name: '<img src=x onerror=ran=8>', arguments: attacks[0] },
    };
    streams(...attacks, { reasoning_content: attacks.join('') }, { tool_calls: [call] });
    const { page, complaints } = await opened();
    const count = 'document.querySelectorAll("*").length';
    const elements = await page.evaluate<number>(count);
    await ask(page, attacks.join(''));
    await answer(page).getByText('tokens in').waitFor();
    await answer(page).getByText('Reasoning').click();
    expect(await answer(page).locator('> .text').textContent()).toBe(attacks.join(''));
    expect(await page.evaluate('globalThis.ran')).toBeUndefined();
    const strange =
      'turns.querySelectorAll("img, script, svg, iframe, a, b, [onerror], [onload], [href], [src]").length';
    expect(await page.evaluate(strange)).toBe(0);
    // The elements around two turns and one call, whatever their content.
    expect((await page.evaluate<number>(count)) - elements).toBeLessThan(30);
    expect(server.seen.filter(({ url }) => /steal|\/x$/.test(url))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('shows a few pictures of bounded size from the answer, and loads none', async () => {
    const url = `data:image/png;base64,${png}`;
    const images = (...urls: unknown[]) =>
      urls.map((each) => ({ type: 'image_url', image_url: { url: each } }));
    const refused = [
      `${server.address}/steal.png`,
      'javascript:globalThis.ran=1',
      'data:text/html,<script>globalThis.ran=2</script>',
      `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" onload="globalThis.ran=3"/>`,
      `data:image/svg+xml;base64,${btoa('<svg onload="globalThis.ran=4"/>')}`,
      `${url}" onerror="globalThis.ran=5`,
    ];
    streams(
      { content: 'Two:', images: images(url) },
      { images: images(url, 7, null, '') },
      { images: [null, 'x', 3] },
    );
    const { page, complaints } = await opened();
    await ask(page);
    await answer(page).getByText('tokens in').waitFor();
    const widths =
      'Promise.all([...turns.querySelectorAll("img")].map((one) => one.decode().then(() => one.naturalWidth)))';
    expect(await page.evaluate(widths)).toEqual([1, 1]);
    expect(await accessFaults(page, { part: '#turns' })).toEqual([]);

    streams({ images: images(...refused) }, { images: images(...Array.from({ length: 5 }, () => url)) });
    await ask(page, 'More');
    await answer(page).getByText('3 more images not shown.').waitFor();
    expect(await answer(page).locator('img').count()).toBe(2);
    for (const each of refused) expect(await answer(page).innerText()).toContain(each.slice(0, 200));

    streams({ images: images(`data:image/png;base64,${'A'.repeat(9_000_000)}`) }, { images: images(url) });
    await ask(page, 'A broken one');
    await answer(page).getByText('An image that can’t be shown').waitFor();
    expect(await answer(page).locator('img').count()).toBe(1);
    expect(await page.evaluate('globalThis.ran')).toBeUndefined();
    expect(server.seen.filter(({ url: path }) => path.includes('steal'))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('cannot become markup even if a script tries: the policy forbids text as elements', async () => {
    const { page } = await opened();
    const tried = 'try { document.body.innerHTML = "<b>x</b>"; "made" } catch (error) { error.name }';
    expect(await page.evaluate(tried)).toBe('TypeError');
    const loads = `new Promise((resolve) => { const image = new Image(); image.onerror = () => resolve('refused');
      image.onload = () => resolve('loaded'); image.src = '${server.address}/x.png'; })`;
    expect(await page.evaluate(loads)).toBe('refused');
    const calls = `fetch('http://localhost:${new URL(server.address).port}/v1/models').then(() => 'sent', () => 'refused')`;
    expect(await page.evaluate(calls)).toBe('refused');
  });

  it('of 40 MB is read completely in bounded memory, and its first 200,000 characters are shown', async () => {
    const piece = 'x'.repeat(500_000);
    server.chat = async (_request, response) => {
      begin(response);
      for (let at = 0; at < 80; at += 1)
        if (!write(response, { content: piece })) await once(response, 'drain');
      response.end('data: [DONE]\n\n');
    };
    const { page } = await opened();
    await ask(page);
    await answer(page).getByText('39,800,000 more characters are not shown.').waitFor({ timeout: 25_000 });
    expect((await answer(page).locator('> .text').textContent())?.length).toBe(200_000);
    // Memory in use, without what waits for the garbage collector.
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    expect(usedSize).toBeLessThan(20_000_000);
  });
});

/** Asks a further question, which is answered, and returns what was sent with it. */
async function askOnce(page: Page, question: string): Promise<unknown> {
  streams('fine');
  await ask(page, question);
  await answer(page).getByText('fine').waitFor();
  return asked().at(-1)?.['messages'];
}

describe('an interrupted answer', () => {
  it('that the customer stops keeps its text, drops a partial tool call, which vendors reject, and closes the connection', async () => {
    let gone: Promise<unknown> | undefined;
    const half = {
      index: 0,
      id: 'call-1',
      type: 'function',
      function: { name: 'weather', arguments: '{"ci' },
    };
    server.chat = (_request, response) => {
      gone = once(response, 'close');
      write(begin(response), { content: 'I look.', tool_calls: [half] });
    };
    const { page } = await opened();
    await ask(page);
    await answer(page).getByText('weather').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await answer(page).getByText('Stopped.').waitFor();
    await gone;
    expect(await answer(page).locator('> .text').innerText()).toBe('I look.');
    expect(await askOnce(page, 'Go on')).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'I look.' },
      { role: 'user', content: 'Go on' },
    ]);
  });

  it('is also charged if it was stopped before any content, and its cost is shown once the relay has it', async () => {
    let tags: unknown;
    server.chat = ({ headers }) => (tags = headers['x-relay-tags']);
    const { page } = await opened();
    await ask(page);
    await expect.poll(() => tags).toMatch(/^playground=\w+$/);
    await page.getByRole('button', { name: 'Stop' }).click();
    await answer(page).getByText('Stopped. The cost appears shortly.').waitFor();
    const mark = String(tags).split('=')[1] ?? '';
    server.rows = [
      usageRow('another', 0, { charge: 9, tags: { playground: 'other' } }),
      usageRow(callId, 0, { charge: 0.5, end: 'client_gone', tags: { playground: mark } }),
    ];
    await answer(page)
      .getByText(/^Cost ¥0\.50, .* Stopped\. Request 01m81/)
      .waitFor();
  });

  it('of an abandoned conversation is not part of the next one', async () => {
    server.chat = (_request, response) => void write(begin(response), { content: 'of the old one' });
    const { page } = await opened();
    await ask(page);
    await answer(page).getByText('of the old one').waitFor();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true);
    expect(await askOnce(page, 'Anew')).toEqual([{ role: 'user', content: 'Anew' }]);
  });

  it('that was rejected returns the question to its field, and does not send it with the next one', async () => {
    server.chat = (_request, response) => refuse(response);
    const { page } = await opened();
    await ask(page, 'Too large');
    await answer(page).getByText('Not enough balance.').waitFor();
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('Too large');
    expect(await askOnce(page, 'Smaller')).toEqual([{ role: 'user', content: 'Smaller' }]);
  });

  it('shows that it is waiting while nothing arrives', async () => {
    server.chat = (_request, response) => begin(response).flushHeaders();
    const { page } = await opened();
    await ask(page);
    await expect.poll(() => meta(page)).toMatch(/^Waiting, \d/);
  });

  const failures: [string, (response: ServerResponse) => void, string][] = [
    ['a refusal', refuse, 'Not enough balance. (request req-1)'],
    ['an error in the stream', ends('{"error":{"message":"<b>overloaded</b>"}}'), '<b>overloaded</b>'],
    ['a cut stream', ends('{"choices":[{"delta":{"content":"ha"}}]}'), 'the answer was cut off'],
    [
      'a cut connection',
      (response) => void begin(response).write('data: {', () => response.destroy()),
      'Failed:',
    ],
    ['no JSON', ends('<html>'), 'not a valid stream'],
    ['a line without end', ends('x'.repeat(13_000_000)), 'too long to show'],
    ['strange types', ends('[1]\n\ndata: 7'), 'not a valid stream'],
  ];

  it('is reported however it failed, and the next question can be asked', async () => {
    const { page } = await opened();
    for (const [failure, respond, said] of failures) {
      server.chat = (_request, response) => respond(response);
      await ask(page);
      await expect.poll(() => meta(page), { message: failure }).toContain(said);
      await askOnce(page, 'Again');
    }
  });
});
