import { mkdtempSync, renameSync, rmSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import packed from '@sparticuz/chromium';
import type axe from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

/**
 * Starts a real Chromium, with its web security on. A machine that cannot run it makes the test fail: pages that no
 * browser has shown are not tested. Close it when the file's tests are over.
 */
export const startBrowser = async (): Promise<Browser> =>
  chromium.launch({
    executablePath: await unpackedChromium(),
    headless: true,
    // Tests run in containers, as root. Of the package's own options many switch security off.
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none', '--no-zygote'],
  });

/** A page of its own context, so without anybody's cookies. Its console errors and failed loads are collected. */
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
  // Shorter than a test, so that a failure says which step it was.
  page.setDefaultTimeout(8_000);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, complaints };
}

const { source: axeSource } = createRequire(import.meta.url)('axe-core/axe.min.js') as typeof axe;

interface Looked {
  part?: string;
  /** The only rules to check. */
  rules?: string[];
}

/** What axe finds wrong with the page as it is shown now, or with a part of it: the rule, and the elements. */
export async function accessFaults(page: Page, { part = 'html', rules }: Looked = {}): Promise<string[]> {
  // Not as a script element: the content security policy of the page stays as it is.
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axeSource);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  const violations = await page.evaluate<axe.Result[]>(
    `axe.run({ include: ${JSON.stringify(part)}, exclude: ${repeatedRows} }, ${options}).then((found) => found.violations)`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary.replaceAll('\n', ' ')}`),
  );
}

/**
 * Rows of tables that differ from an earlier row in texts alone, so what is wrong with one is wrong with both. Of 300 models
 * they took 1 s of the processor. Two rows below each other may have other backgrounds.
 */
const repeatedRows = String.raw`(() => {
  const shapes = new Set();
  return [...document.querySelectorAll('tbody > tr')].filter((row) => {
    const tags = row.outerHTML.replaceAll(/>[^<]+/g, '>text').replaceAll(/ (href|value|data-[\w-]+)="[^"]+"/g, ' $1');
    const shape = row.sectionRowIndex % 2 + row.closest('table').className + tags;
    return shapes.has(shape) || !shapes.add(shape);
  });
})()`;

/**
 * The browser's program. Its package unpacks into the folder of temporary files and takes what lies there for whole, so
 * test files that begin together each unpack their own, and the first one's stays.
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
