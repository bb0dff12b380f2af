/** Carries out the walks of docs/daily-tasks.md in a real browser, with the console of the running stack. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { vi } from 'vitest';
import { findControl, openPage, startBrowser } from '../../support/browser.ts';
import { root } from '../pages.ts';
import { patternOf, type Action, type WalkStep } from './page.ts';
import { filledIn, type DailyRelay } from './relay.ts';

/** `DOCS_IMAGES=write` updates the pictures. */
export const makesImages = process.env['DOCS_IMAGES'] === 'write';

/**
 * Returns the text of the main part, all readable text of the page including its fields, and a new key. A locator would
 * load Playwright's 330 KB of script into the page, 20 ms of the processor for each page.
 */
const readTexts = `(() => {
  const typed = [...document.querySelectorAll('input:not([type=password]), textarea')].map(({ value }) => value);
  return {
    main: document.querySelector('main').innerText,
    all: [document.body.innerText, ...typed].join('\\n'),
    made: document.querySelector('[data-secret]')?.innerText ?? '',
  };
})()`;

const selectors: Readonly<Record<Action['kind'], string>> = {
  address: '',
  open: 'nav[aria-label=Sections] a',
  follow: 'a',
  press: 'button',
  type: 'input, textarea',
  choose: 'select',
};

const viewport = { width: 1280, height: 860 };

export class Walker {
  /** Errors that pages wrote to the browser's console. */
  readonly complaints: string[];
  readonly #relay: DailyRelay;
  readonly #browser: Browser;
  readonly #page: Page;
  readonly #base: string;

  private constructor(
    relay: DailyRelay,
    browser: Browser,
    { page, complaints }: { page: Page; complaints: string[] },
  ) {
    [this.#relay, this.#browser, this.#page, this.complaints] = [relay, browser, page, complaints];
    this.#base = page.url();
  }

  static async start(relay: DailyRelay): Promise<Walker> {
    const browser = await startBrowser({ draws: makesImages });
    const opened = await openPage(browser, {
      viewport,
      colorScheme: 'light',
      reducedMotion: 'reduce',
      timezoneId: 'UTC',
    });
    await opened.page.goto(await relay.console());
    return new Walker(relay, browser, opened);
  }

  stop(): Promise<void> {
    return this.#browser.close();
  }

  async take({ action, says, image, sentence }: WalkStep): Promise<void> {
    await this.#act(action);
    const wanted = patternOf(says.map((text) => filledIn(text, this.#relay.named)));
    let shown = { main: '', all: '', made: '' };
    // A console page that waits for work reloads itself.
    let isNew = true;
    const look = async (): Promise<void> => {
      if (action.kind === 'address' && !isNew) await this.#act(action);
      isNew = false;
      shown = await this.#page.evaluate<typeof shown>(readTexts);
      if (!wanted.test(shown.main))
        throw new Error(
          `${sentence}: wanted ${wanted} on the page, found on ${this.#page.url()}: ${shown.main}`,
        );
    };
    await vi.waitFor(look, { timeout: 15_000, interval: 100 });
    if (this.#relay.secrets.some((secret) => shown.all.includes(secret)))
      throw new Error(`${sentence}: the page shows a vendor's key`);
    if (shown.made !== '') this.#relay.named['shownKey'] = shown.made.trim();
    if (image !== undefined) await this.#picture(image, shown.all);
  }

  async #act(action: Action): Promise<void> {
    const named = (text: string): string => filledIn(text, this.#relay.named);
    if (action.kind === 'address') {
      await this.#page.goto(this.#relay.origin);
      return;
    }
    if (action.kind === 'open' && !this.#page.url().startsWith(this.#base)) await this.#page.goto(this.#base);
    const middle = await findControl(this.#page, selectors[action.kind], named(action.what));
    if (action.kind === 'type') return this.#page.keyboard.insertText(named(action.text));
    if (action.kind === 'choose') return this.#page.keyboard.type(action.text);
    // Another page, a file, or an answer on the same page.
    const answered = Promise.race([
      this.#page.waitForEvent('domcontentloaded'),
      this.#page.waitForEvent('download'),
      this.#page.waitForEvent('requestfinished', (request) => request.resourceType() === 'fetch'),
    ]);
    await Promise.all([answered, this.#page.mouse.click(middle.x, middle.y)]);
  }

  /** Takes a picture, but never of a key. */
  async #picture(image: string, shown: string): Promise<void> {
    if (/sk-[\w-]{40}/.test(shown)) throw new Error(`${image} would show a key`);
    if (!makesImages) return;
    const file = path.join(root, 'docs', image);
    mkdirSync(path.dirname(file), { recursive: true });
    const last = await this.#page.locator('main > :last-child').boundingBox();
    const height = Math.min(viewport.height, Math.ceil((last?.y ?? 0) + (last?.height ?? 0)) + 32);
    const clip = { x: 0, y: 0, width: viewport.width, height };
    await this.#page.screenshot({ path: file, clip, animations: 'disabled', caret: 'hide' });
  }
}
