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

/** On a phone in the dark, and on a screen. `show` opens the page, until all is there. */
export const looksSound = (show: (options: BrowserContextOptions) => Promise<Opened>): void =>
  it.each([
    [375, 'dark'],
    [1280, 'light'],
  ] as const)(
    'at %i px in %s has no fault of access and no part beyond the edge',
    async (width, colorScheme) => {
      const { page, complaints } = await show({ colorScheme, viewport: { width, height: 800 } });
      expect(await accessFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      expect(complaints).toEqual([]);
    },
  );
