import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { accessFaults, openPage, startBrowser } from '../support/browser.ts';
import { emptyPath, PagesServer } from './pages-server.ts';

interface Opened {
  page: Page;
  complaints: string[];
}

/** A browser and a server of the pages for one test file. The server has only the data that `prepare` sets for each test. */
export function pagesRig(prepare: (server: PagesServer) => void) {
  let browser: Browser;
  const server = new PagesServer();
  /** Tabs by their options: a reused tab needs half the processor time of a new one. */
  const idleTabs = new Map<string, Opened[]>();
  const usedTabs: [string, Opened][] = [];
  beforeAll(async () => {
    [browser] = await Promise.all([startBrowser(), server.start()]);
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
  });
  beforeEach(() => {
    server.clear();
    prepare(server);
  });
  afterEach(async () => {
    server.clear();
    for (const [key, tab] of usedTabs.splice(0)) {
      await emptyTab(tab, server.address);
      idleTabs.set(key, [...(idleTabs.get(key) ?? []), tab]);
    }
  });
  return {
    server,
    /** Without a path: an empty page. */
    open: async (
      path?: string,
      { viewport = { width: 1280, height: 900 }, colorScheme = 'light', ...more }: BrowserContextOptions = {},
    ): Promise<Opened> => {
      const rest = { locale: 'en-US', ...more };
      const key = JSON.stringify(rest);
      const tab = idleTabs.get(key)?.pop() ?? (await openPage(browser, rest));
      usedTabs.push([key, tab]);
      if (viewport) await tab.page.setViewportSize(viewport);
      await tab.page.emulateMedia({ colorScheme, media: null });
      if (path !== undefined) await tab.page.goto(server.address + path);
      return tab;
    },
  };
}

/** Resets a tab after a test: other tabs of its context, routes, listeners, storage, complaints. */
async function emptyTab({ page, complaints }: Opened, address: string): Promise<void> {
  const context = page.context();
  const others = context.pages().filter((each) => each !== page);
  await Promise.all(others.map((each) => each.close()));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  page.removeAllListeners('dialog');
  // In the same origin, because the browser would start another process for a different one.
  await page.goto(address + emptyPath);
  await page.evaluate('localStorage.clear(), sessionStorage.clear()');
  await context.clearCookies();
  complaints.length = 0;
}

/** On a phone and on a screen, in dark and light mode, in both languages. `show` opens the page and waits for its content. */
export const looksSound = (show: (options: BrowserContextOptions) => Promise<Opened>): void =>
  it.each([
    [390, 'dark', 'en-US'],
    [1280, 'light', 'en-US'],
    [390, 'light', 'zh-CN'],
    [1280, 'dark', 'zh-CN'],
  ] as const)('at %i px, %s, %s is accessible and does not overflow', async (width, colorScheme, locale) => {
    const { page, complaints } = await show({ colorScheme, locale, viewport: { width, height: 800 } });
    // Between the two modes of a page nothing but colours differs.
    const looked = colorScheme === 'dark' ? { rules: ['color-contrast', 'link-in-text-block'] } : {};
    expect(await accessFaults(page, looked)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
  });
