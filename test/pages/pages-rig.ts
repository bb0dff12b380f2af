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

/** In both languages, in dark and light mode. `show` opens the page on a phone and waits for its content. */
export const looksSound = (show: (options: BrowserContextOptions) => Promise<Opened>): void =>
  it.each([
    ['en-US', 'dark', 'light'],
    ['zh-CN', 'light', 'dark'],
  ] as const)(
    'in %s, on a phone (%s) and then on a screen (%s), is accessible and does not overflow',
    async (locale, onPhone, onScreen) => {
      const { page, complaints } = await show({
        colorScheme: onPhone,
        locale,
        viewport: { width: 390, height: 800 },
      });
      await expectSoundLook(page, onPhone);
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: onScreen });
      // The plot is drawn again in the next frame.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      await expectSoundLook(page, onScreen);
      expect(complaints).toEqual([]);
    },
  );

async function expectSoundLook(page: Page, colorScheme: 'dark' | 'light'): Promise<void> {
  // Between the two modes of a page nothing but colours differs.
  const looked = colorScheme === 'dark' ? { rules: ['color-contrast', 'link-in-text-block'] } : {};
  expect(await accessFaults(page, looked)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
}
