/** An hour of refreshes of the overview in a real browser, with a fast clock. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Clock } from '../../shared/relay/ports/host.ts';
import { startWatchedRig, type ConsoleRig } from '../console/console-rig.ts';
import { openPage } from '../support/browser.ts';

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

/** Runs this many times faster than real time, once started. */
function fastClock(real: Clock) {
  let [fromMs, factor] = [real.now(), 1];
  const clock: Clock = {
    ...real,
    now: () => nowMs + Math.round((real.now() - fromMs) * factor),
    async sleep(ms, signal) {
      const untilMs = clock.now() + ms;
      while (clock.now() < untilMs) {
        if (signal?.aborted) return;
        await real.sleep(5, signal);
      }
    },
  };
  const hurry = (): void => void ([fromMs, factor] = [real.now(), 500]);
  return { clock, hurry };
}

/** Memory in use after a garbage collection. */
async function kept(page: Page) {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send('HeapProfiler.collectGarbage');
  const { nodes, jsEventListeners } = await devTools.send('Memory.getDOMCounters');
  const { usedSize } = await devTools.send('Runtime.getHeapUsage');
  await devTools.detach();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const elements = await page.evaluate<number>(`document.querySelectorAll('*:not(.strip *)').length`);
  return { elements, nodes, jsEventListeners, page: usedSize, process: process.memoryUsage().heapUsed };
}

const megabyte = 1024 * 1024;

it('the overview stays logged in during an hour of refreshes, and neither the page nor the process grows', async () => {
  const { clock, hurry } = fastClock(rig.ports.clock);
  const served = await rig.serve({ ports: { ...rig.ports, clock } });
  const { page, complaints } = await openPage(browser, { timezoneId: 'Asia/Shanghai' });
  await page.goto(served.address);
  await page.evaluate(`globalThis.looks = 0;
    new MutationObserver(() => (looks += 1)).observe(document.querySelector('#overview-look'), { childList: true })`);
  hurry();
  const until = (count: number, hours: number) =>
    expect
      .poll(
        async () =>
          (await page.evaluate<number>('looks')) >= count && clock.now() - nowMs >= hours * 3_600_000,
        { timeout: 90_000, interval: 200 },
      )
      .toBe(true);
  await until(20, 0);
  const before = await kept(page);
  // An idle session lasts half of this.
  await until(120, 1);
  const after = await kept(page);
  // One leaked element a refresh would be 100. Strips get more pieces as data arrives.
  expect(after.elements).toBeLessThan(before.elements + 50);
  // Removed elements that are not collected yet; a leak would be half a million.
  expect(after.nodes).toBeLessThan(50_000);
  expect(after.jsEventListeners).toBeLessThan(before.jsEventListeners + 20);
  expect(after.page - before.page).toBeLessThan(megabyte);
  expect(after.process - before.process).toBeLessThan(10 * megabyte);
  expect(await page.getByRole('status').innerText()).toBe('Live');
  expect(complaints).toEqual([]);
  expect(rig.faults).toEqual([]);
}, 180_000);
