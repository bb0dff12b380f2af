import { describe, expect, it } from 'vitest';
import { manyModels } from './many-models.ts';
import { looksSound, pagesRig } from './pages-rig.ts';

const { server, open } = pagesRig((each) => Object.assign(each, manyModels(Date.now())));

describe('the page of 300 models', () => {
  looksSound(async (options) => {
    const made = await open('/', options);
    await made.page.getByRole('searchbox').waitFor();
    return made;
  });

  it('is smaller than 60 KB with its script, in each language', async () => {
    const sizeOf = async (path: string): Promise<number> => {
      const answer = await fetch(server.address + path, { headers: { accept: 'text/html' } });
      return (await answer.arrayBuffer()).byteLength;
    };
    const html = await (await fetch(server.address, { headers: { accept: 'text/html' } })).text();
    const script = /<script src="([^"]+)"/.exec(html)?.[1] ?? '';
    for (const language of ['en', 'zh'])
      expect((await sizeOf(`/?lang=${language}`)) + (await sizeOf(script))).toBeLessThan(60_000);
  });

  it('is complete without a script: models, prices, plans, examples', async () => {
    const { page } = await open('/', { javaScriptEnabled: false });
    expect(await page.getByRole('rowheader').count()).toBeGreaterThan(300);
    expect(await page.getByRole('searchbox').count()).toBe(0);
    expect(await page.getByRole('row', { name: 'qwen7 ' }).innerText()).toMatch(/qwen7\s+¥\d/);
    await page.getByText('Codex (~/.codex/config.toml)').click();
    expect(await page.locator('#connect').innerText()).toContain('wire_api = "responses"');
  });

  it('finds models by all words, in names and families, with only the keyboard', async () => {
    const { page } = await open('/');
    const shown = page.locator('.models tbody tr:not([hidden]) code');
    await page.keyboard.press('/');
    await page.keyboard.type('meta-llama instruct-1');
    await expect.poll(() => shown.count()).toBe(11);
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('qwen no-such');
    await expect.poll(() => page.getByText('No model has this name.').isVisible()).toBe(true);
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete');
    await expect.poll(() => shown.count()).toBe(300);
  });

  describe('the page of a model', () => {
    const about = 'It <b>reads</b> everything';
    const prepare = (): void => {
      server.settings.modelFacts = {
        'gpt-3': { context: 128_000, output: 16_384, takes: ['text', 'image'], makes: ['text'], about },
      };
    };
    looksSound((options) => {
      prepare();
      return open('/?model=gpt-3', options);
    });

    it('contains its prices, its description, and examples with its name', async () => {
      prepare();
      const { page } = await open('/');
      await page.getByRole('link', { name: 'Qwen/Qwen3-7', exact: true }).click();
      await page.getByRole('heading', { name: 'Qwen/Qwen3-7' }).waitFor();
      expect(await page.locator('#connect pre').first().innerText()).toContain('"model":"Qwen/Qwen3-7"');
      await page.goto(`${server.address}/?model=gpt-3`);
      const text = await page.locator('main').innerText();
      for (const part of [about, '128,000 tokens', 'text, image', 'fast', '¥3']) expect(text).toContain(part);
      await page.getByRole('link', { name: '中文' }).click();
      await page.getByText('文本, 图片').waitFor();
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('gpt-3');
      await page.goto(`${server.address}/?lang=en&model=gpt-1`);
      expect(await page.locator('main').innerText()).toContain('Included in\nLevel 1, Level 2');
    });
  });

  it('copies the base URL and the examples', async () => {
    const { page } = await open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    await page.getByRole('button', { name: 'Copy base URL' }).click();
    await expect.poll(copied).toBe(`${server.address}/v1`);
    await page.getByRole('button', { name: 'Copy the curl example' }).click();
    await expect.poll(copied).toContain('curl -N ');
  });

  it('escapes markup in notices, plans, contact and names', async () => {
    const attack = `"><img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>`;
    server.settings = {
      subscriptionEnabled: true,
      contact: attack,
      notices: [{ text: attack, models: [attack] }],
      aliases: [{ name: attack, models: ['a'], onContextLength: false }],
    };
    server.snapshot = {
      models: ['a', attack],
      plans: [
        { level: 1, price: 1, items: [{ id: 'x', name: attack, icon: attack, value: 1, models: [attack] }] },
      ],
    };
    const { page } = await open('/');
    await page.getByRole('searchbox').fill('img');
    expect(await page.evaluate('[globalThis.ran, document.images.length, document.scripts.length]')).toEqual([
      undefined,
      0,
      1,
    ]);
  });
});
