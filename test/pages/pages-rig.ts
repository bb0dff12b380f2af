import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { accessFaults, openPage, startBrowser } from '../support/browser.ts';
import { PagesServer } from './pages-server.ts';

interface Opened {
  page: Page;
  complaints: string[];
}

/** A browser and a server of the pages for one test file. The server has nothing but what `prepare` gives it for each test. */
export function pagesRig(prepare: (server: PagesServer) => void) {
  let browser: Browser;
  const server = new PagesServer();
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
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  return {
    server,
    /** Without a path: an empty page. */
    open: async (path?: string, options: BrowserContextOptions = {}): Promise<Opened> => {
      const made = await openPage(browser, options);
      if (path !== undefined) await made.page.goto(server.address + path);
      return made;
    },
  };
}

/** On a phone and on a screen, in the dark and in the light, in both languages. `show` opens the page, until all is there. */
export const looksSound = (show: (options: BrowserContextOptions) => Promise<Opened>): void =>
  it.each([
    [390, 'dark', 'en-US'],
    [1280, 'light', 'en-US'],
    [390, 'light', 'zh-CN'],
    [1280, 'dark', 'zh-CN'],
  ] as const)(
    'at %i px, %s, %s has no fault of access and no part beyond the edge',
    async (width, colorScheme, locale) => {
      const { page, complaints } = await show({ colorScheme, locale, viewport: { width, height: 800 } });
      expect(await accessFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    },
  );
