/** A live page: the server's events with a test clock, and a real browser that receives ten thousand of them. */
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guardHeaders } from '../../infra/ops/console/guard.ts';
import { createLiveStreams } from '../../infra/ops/console/visit/live.ts';
import type { LiveLook } from '../../infra/ops/console/visit/visit.ts';
import { html } from '../../infra/ops/markup.ts';
import { Failure } from '../../shared/operate/plan.ts';
import { openPage, startBrowser } from '../support/browser.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const key = `sk-${'a'.repeat(48)}`;
const look = (nowMs: number): LiveLook => ({
  nowMs,
  words: 'w',
  fragments: [{ id: 'p', markup: html`<b>${key}</b>` }],
});

function streams(looked: (nowMs: number) => Promise<LiveLook> = async (nowMs) => look(nowMs)) {
  const clock = new VirtualClock(0);
  const faults: unknown[] = [];
  const live = createLiveStreams(clock, (error) => faults.push(error));
  const begin = () => ({ everyMs: 1_000, look: async () => looked(clock.now()) });
  return { clock, faults, open: () => live(begin, 'requests/live') };
}

describe('the stream of a live page', () => {
  it('refreshes once in each interval, ends after a quarter of an hour, and masks keys', async () => {
    const { clock, open } = streams();
    const text = await clock.run(open().text());
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(Array.from({ length: 900 }, (_, at) => at * 1_000));
    expect(text).not.toContain(key);
    expect(text).toContain(String.raw`<b>sk-aaaa...aaaa</b>`);
    expect([clock.now(), clock.pendingTimers]).toEqual([900_000, 0]);
  });

  it('is one of at most three; a stream that the browser leaves makes room and stops refreshing', async () => {
    const { clock, open } = streams();
    const [first] = [open(), open(), open()].map(({ body }) => body!.getReader());
    expect(open().status).toBe(503);
    await clock.run(first!.read());
    const next = first!.read();
    await first!.cancel();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(clock.pendingTimers).toBe(0);
    expect(open().status).toBe(200);
  });

  it('reports an expected error and continues more slowly, and reports an unexpected error only to the process', async () => {
    let looks = 0;
    const { clock, faults, open } = streams(async (nowMs) => {
      looks += 1;
      if (looks === 2) throw new Failure('no valid AWS credentials');
      if (looks === 3) throw new Error('inner words');
      return look(nowMs);
    });
    const text = await clock.run(open().text());
    expect(text).toContain('{"trouble":"no valid AWS credentials"}');
    expect(text).not.toContain('inner words');
    expect(faults.map(String)).toEqual(['Error: inner words']);
    expect([...text.matchAll(/^id: (\d+)$/gm)].slice(0, 2).map(([, id]) => id)).toEqual(['0', '21000']);
  });
});

describe('a window of the console', () => {
  it('cannot be reached by a customers’ page of the same host that opened it', async () => {
    const customers = { 'cross-origin-opener-policy': 'same-origin' };
    const server = createServer(({ url = '' }, reply) => {
      reply.writeHead(200, {
        'content-type': 'text/html',
        ...(url === '/console/' ? guardHeaders : customers),
      });
      reply.end(`<title>${url}</title>`);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { page } = await openPage(browser);
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/account`);
      const openWindow = async (path: string): Promise<void> => {
        const opened = page.context().waitForEvent('page');
        await page.evaluate(`globalThis.made = open('${path}')`);
        await (await opened).waitForURL(`**${path}`);
      };
      await openWindow('/other');
      expect(await page.evaluate('made.document.title')).toBe('/other');
      await openWindow('/console/');
      // The opener sees the other window's process a little later, and cannot read its document in between.
      await expect.poll(() => page.evaluate('made.closed'), { timeout: 10_000 }).toBe(true);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** Replaces the server for a page: `sources` are its connections, `send` sends an event on the last one. */
const withoutServer = `
  globalThis.sources = [];
  globalThis.EventSource = class extends EventTarget {
    static CLOSED = 2;
    readyState = 1;
    constructor(address) { super(); this.address = address; sources.push(this); }
    close() { this.readyState = 2; }
  };
  globalThis.send = (id, parts) => {
    const event = new MessageEvent('message', { data: JSON.stringify({ words: 'w' + id, parts }), lastEventId: String(id) });
    sources.at(-1).dispatchEvent(event);
  };
  globalThis.row = (at) => '<tr data-key="r' + at + '"><td><a href="#">r' + at + '</a> <time data-sort="' + at + '"></time></td></tr>';
  globalThis.sendRows = (id, ...times) => send(id, [{ id: 'rows', rows: true, html: times.map(row).join('') }]);
`;

async function watched(): Promise<{ page: Page; rows: () => Promise<string[]> }> {
  const { page } = await openPage(browser);
  await page.setContent(`<div data-live="live?a=b" data-after="5" data-rows="200" data-on>
    <button hidden>Watch live</button> <span role="status"></span> <span data-words></span></div>
    <div id="summary"><details><summary>Figures</summary></details></div>
    <table><tbody id="rows"></tbody></table>`);
  await page.evaluate(withoutServer);
  await page.addScriptTag({
    content: readFileSync(new URL('../../infra/ops/console/live.js', import.meta.url), 'utf8'),
  });
  return { page, rows: () => page.locator('#rows tr a').allInnerTexts() };
}

describe('the live page', () => {
  it('keeps the newest 200 rows of 2,000, in order of time, each once', async () => {
    const { page, rows } = await watched();
    await page.evaluate(`for (let at = 0; at < 2000; at += 4) sendRows(at, at + 3, at + 1, at + 2, at)`);
    const shown = await rows();
    expect(shown).toEqual(Array.from({ length: 200 }, (_, at) => `r${1_999 - at}`));
    await page.evaluate(`sendRows(2000, 1999, 1998)`);
    expect(await rows()).toEqual(shown);
    expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(1_000);
    // The oldest row is removed, whatever order is chosen.
    await page.evaluate(
      'const body = document.querySelector("#rows"); body.append(...[...body.rows].reverse())',
    );
    await page.evaluate('sendRows(2001, 2001)');
    const others = await rows();
    expect([others.length, others.includes('r2001'), others.includes('r1800')]).toEqual([200, true, false]);
  });

  it('sends no request while it is paused or hidden, and continues where it stopped', async () => {
    const { page, rows } = await watched();
    const asked = (): Promise<unknown> =>
      page.evaluate('sources.map(({ address, readyState }) => [address, readyState])');
    await page.evaluate('sendRows(7, 1)');
    await page.getByRole('button', { name: 'Pause' }).click();
    expect(await asked()).toEqual([['live?a=b&after=5', 2]]);
    expect(await page.getByRole('status').innerText()).toBe('Paused');
    await page.getByRole('button', { name: 'Watch live' }).click();
    expect(await asked()).toEqual([
      ['live?a=b&after=5', 2],
      ['live?a=b&after=7', 1],
    ]);
    const hide = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await hide(true);
    expect(await asked()).toMatchObject([{}, { 1: 2 }]);
    await hide(false);
    expect(await asked()).toMatchObject([{}, {}, { 0: 'live?a=b&after=7', 1: 1 }]);
    await page.evaluate('sendRows(8, 2, 1)');
    expect(await rows()).toEqual(['r2', 'r1']);
  });

  it('moves no row under the pointer, shows new rows when the pointer leaves, and keeps an open part open', async () => {
    const { page, rows } = await watched();
    await page.evaluate('sendRows(7, 1)');
    await page.locator('#rows a').hover();
    await page.evaluate('for (let at = 2; at < 300; at += 1) sendRows(at, at)');
    expect(await rows()).toEqual(['r1']);
    await page.getByRole('button').hover();
    await expect.poll(rows).toHaveLength(200);
    expect((await rows())[0]).toBe('r299');
    await page.locator('summary').click();
    await page.getByRole('button').focus();
    await page.getByRole('button').hover();
    await page.evaluate(
      `send(301, [{ id: 'summary', html: '<details><summary>New figures</summary></details>' }])`,
    );
    await expect.poll(() => page.locator('details[open]').innerText()).toBe('New figures');
    // A pointer that has not moved for a minute delays nothing.
    await page.locator('#rows a').first().hover();
    await page.evaluate('sendRows(302, 302)');
    expect((await rows())[0]).toBe('r299');
    await page.evaluate('const before = Date.now(); Date.now = () => before + 61000; sendRows(303, 303)');
    expect((await rows()).slice(0, 2)).toEqual(['r303', 'r302']);
  });

  it('retries at growing intervals once the console has stopped, and then shows a link to reload', async () => {
    const { page } = await watched();
    await page.evaluate(`
      globalThis.waits = [];
      globalThis.setTimeout = (work, ms) => { waits.push(ms); globalThis.again = work; };
      globalThis.fail = () => { sources.at(-1).readyState = 0; sources.at(-1).dispatchEvent(new Event('error')); };
      for (let at = 0; at < 9; at += 1) { fail(); again(); }`);
    expect(await page.evaluate('waits')).toEqual([500, 1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 6e4, 6e4]);
    expect(await page.evaluate('sources.filter(({ readyState }) => readyState !== 2).length')).toBe(1);
    expect(await page.getByRole('status').innerText()).toBe('The console has stopped. Reload');
    expect(await page.evaluate('document.querySelector("[role=status] a").href === location.href')).toBe(
      true,
    );
    await page.evaluate('send(7, []); fail();');
    expect(await page.evaluate('waits.at(-1)')).toBe(500);
    expect(await page.getByRole('status').innerText()).toBe('Live');
    // The page stays, however long the console is stopped: the browser could not load it again.
    await page.evaluate(`
      globalThis.opened = sources.length;
      const stoppedMs = Date.now();
      Date.now = () => stoppedMs + 3_600_000;
      again();`);
    expect(await page.evaluate('sources.length - opened')).toBe(1);
  });

  it('reports that it is no longer live if the console rejects it', async () => {
    const { page } = await watched();
    await page.evaluate('sources[0].readyState = 2; sources[0].dispatchEvent(new Event("error"))');
    expect(await page.getByRole('status').innerText()).toMatch(/^Disconnected: the console stopped/);
    expect(await page.getByRole('button').innerText()).toBe('Watch live');
  });
});
