import { mkdtempSync, renameSync, rmSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import packed from '@sparticuz/chromium';
import type axe from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { vi } from 'vitest';

/**
 * Starts a real Chromium with web security enabled. The test fails on a machine that can't run it, because pages that
 * no browser has shown are untested. Close it after the file's tests.
 * @param draws draws pixels, which only screenshots need
 */
export const startBrowser = async ({ draws = false } = {}): Promise<Browser> =>
  chromium.launch({
    executablePath: await unpackedChromium(),
    headless: true,
    // Tests run in containers as root. Many of the package's own options would disable security.
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none', '--no-zygote'].concat(
      // Chromium draws no pixels if it has no memory for tiles. That saves a third of its processor time and changes no styles, layout or frames.
      draws ? [] : ['--force-gpu-mem-available-mb=0'],
    ),
  });

/** Opens a page in its own context, without other cookies, and collects its console errors and failed loads. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    locale: 'en-US',
    // Each frame of a transition is drawn by the processor.
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  // Shorter than a test's time-out, so that a failure names its step.
  page.setDefaultTimeout(8_000);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, complaints };
}

/**
 * Waits for a control, focuses it, selects its text, and returns the middle of what a person can click there. Use it instead of
 * Playwright's locators in a document that gets few actions: a document's first locator takes 30 ms of processor time, because it
 * loads 330 KB of script.
 * @param selector CSS
 * @param name the accessible name; any control matches without one
 */
export const findControl = (page: Page, selector: string, name?: string): Promise<{ x: number; y: number }> =>
  vi.waitFor(
    async () => {
      const input = [selector, name].map((each) => JSON.stringify(each) ?? 'undefined').join(',');
      const found = await page.evaluate<{ x: number; y: number } | undefined>(`(${focusControl})(${input})`);
      if (!found) throw new Error(`no ${selector} named ${name ?? 'anything'} to use on ${page.url()}`);
      return found;
    },
    { timeout: 8_000, interval: 50 },
  );

const focusControl = String.raw`(selector, name) => {
  const nameOf = (each) => (each.ariaLabel ?? (each.labels?.[0] ?? each).textContent).trim().replaceAll(/\s+/g, ' ');
  const found = [...document.querySelectorAll(selector)].find(
    (each) => (name ?? nameOf(each)) === nameOf(each) && each.checkVisibility() && !each.closest('[aria-hidden]'),
  );
  if (!found) return;
  found.scrollIntoView({ block: 'center' });
  found.focus();
  found.select?.();
  const [{ x, y, width, height }] = found.getClientRects();
  const middle = { x: x + width / 2, y: y + height / 2 };
  return found.contains(document.elementFromPoint(middle.x, middle.y)) ? middle : undefined;
}`;

export async function clickControl(page: Page, selector: string, name?: string): Promise<void> {
  const { x, y } = await findControl(page, selector, name);
  await page.mouse.click(x, y);
}

const { source: axeSource } = createRequire(import.meta.url)('axe-core/axe.min.js') as typeof axe;

/** Loads axe with each document of a page. Evaluating it instead takes 40 ms more of processor time, because Chromium compiles it each time. */
export const loadAxe = (page: Page): Promise<unknown> => page.addInitScript(axeSource);

interface Looked {
  part?: string;
  /** Checks only these rules. */
  rules?: string[];
}

/** Returns the accessibility faults that axe finds on the current page or a part of it: the rule and the elements. */
export async function accessFaults(page: Page, { part = 'html', rules }: Looked = {}): Promise<string[]> {
  // A script element would violate the page's content security policy.
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axeSource);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  const violations = await page.evaluate<axe.Result[]>(
    `(${withoutRows})(${repeatedRows}, () => axe.run(${JSON.stringify(part)}, ${options}).then((found) => found.violations))`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary.replaceAll('\n', ' ')}`),
  );
}

/**
 * Rows of tables that differ from an earlier row in texts alone, so what is wrong with one is wrong with both. Two of each
 * kind remain, because rows below each other may have other backgrounds.
 */
const repeatedRows = String.raw`(() => {
  const shapes = new Set();
  return [...document.querySelectorAll('tbody > tr')].filter((row) => {
    const tags = row.outerHTML.replaceAll(/>[^<]+/g, '>text').replaceAll(/ (href|value|data-[\w-]+)="[^"]+"/g, ' $1');
    const shape = row.sectionRowIndex % 2 + row.closest('table').className + tags;
    return !row.contains(document.activeElement) && (shapes.has(shape) || !shapes.add(shape));
  });
})()`;

/** Runs a check while these rows are out of the page. axe also measures the rows that it excludes: 300 took 200 ms of the processor. */
const withoutRows = `async (rows, run) => {
  const places = rows.map((row) => {
    const place = document.createComment('');
    row.replaceWith(place);
    return place;
  });
  try {
    return await run();
  } finally {
    places.forEach((place, at) => place.replaceWith(rows[at]));
  }
}`;

/**
 * Returns the path of Chromium. Its package unpacks into the temporary folder and trusts any existing files there, so
 * test files that start together unpack separately, and the first copy stays.
 */
async function unpackedChromium(): Promise<string> {
  const kept = path.join(tmpdir(), 'relay-test-chromium-153');
  const program = path.join(kept, 'chromium');
  if (existsSync(program)) return program;
  const own = mkdtempSync(path.join(tmpdir(), 'relay-chromium-'));
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = own;
  try {
    await packed.executablePath();
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  }
  try {
    renameSync(own, kept);
  } catch {
    // Another file was faster.
    rmSync(own, { recursive: true });
  }
  return program;
}
