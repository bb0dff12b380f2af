import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { page } from '../../../../shared/relay/page/page.ts';
import type { PageFacts } from '../../../../shared/relay/page/page-facts.ts';
import { pageStyle, pageStyleHash } from '../../../../shared/relay/page/page-style.ts';

const facts: PageFacts = {
  baseUrl: 'https://relay.example/v1',
  models: ['alpha', 'beta', 'gamma'],
  charges: [
    { id: 1, type: 'token-billing', models: ['alpha'], input: 0.0000015, output: 0.02, anonymous: false },
    { id: 2, type: 'times-billing', models: ['beta'], input: 0, output: 0.1, anonymous: false },
    { id: 3, type: 'times-billing', models: ['alpha'], input: 0, output: 99, anonymous: false },
  ],
  plans: [],
  contact: '',
  relayClosed: false,
  nowMs: 0,
};
const plan = {
  level: 2,
  price: 30,
  items: [
    { id: 'chat', name: 'Chat', icon: '', value: 1000, models: ['alpha', 'beta'] },
    { id: 'all', name: '', icon: '', value: -1, models: ['gamma'] },
  ],
};

const html = (changes: Partial<PageFacts> = {}) => page({ ...facts, ...changes }, 'text/html,*/*').body;
const text = (changes: Partial<PageFacts> = {}) => page({ ...facts, ...changes }, '*/*').body;

describe.each([
  ['HTML', html],
  ['plain text', text],
])('the page as %s', (_name, render) => {
  test('names the base URL and the price of every model by its first rule', () => {
    const body = render();
    expect(body).toContain('https://relay.example/v1');
    expect(body).toMatch(/alpha.*¥0\.0000015 in, ¥0\.02 out, per 1,000 tokens/);
    expect(body).toMatch(/beta.*¥0\.1 per call/);
    expect(body).toMatch(/gamma.*free/);
    expect(body).not.toContain('¥99');
  });

  test('shows the price that is in force, with its cache and its tiers', () => {
    const [now, ...others] = facts.charges;
    const more = {
      cached_input: 0.01,
      cache_write: 0.5,
      tiers: [{ above: 200_000, input: 0.2, output: 0.3 }],
    };
    const charges = [{ ...now!, input: 0.5, ...more }, ...others, { ...now!, id: 9, from: 1, input: 7 }];
    expect(render({ charges })).toMatch(
      /alpha.*¥0\.5 in \(¥0\.01 cached\), ¥0\.02 out, per 1,000 tokens; above 200,000 input tokens ¥0\.2 in, ¥0\.3 out/,
    );
    expect(render({ charges, nowMs: 1 })).toMatch(/alpha.*¥7 in, ¥0\.02 out/);
  });

  test('shows how to connect with curl and both SDKs', () => {
    const body = render();
    expect(body).toContain('curl -N https://relay.example/v1/chat/completions');
    expect(body).toContain('new OpenAI(');
    expect(body).toContain('OpenAI(base_url=');
  });

  test('shows plans only when there are some', () => {
    expect(render()).not.toContain('calls a month');
    const body = render({ plans: [plan] });
    expect(body).toContain('¥30 a month');
    expect(body).toContain('Chat: 1,000 calls a month (alpha, beta)');
    expect(body).toContain('all: unlimited calls (gamma)');
  });

  test('shows the contact, and that the relay is closed', () => {
    const body = render({ contact: 'ops@relay.example', relayClosed: true });
    expect(body).toContain('Contact: ops@relay.example');
    expect(body).toContain('The relay is closed');
  });

  test('is whole when nothing is configured yet', () => {
    expect(render({ models: [], charges: [] })).toMatch(/none yet/i);
  });
});

describe('foreign text', () => {
  const attack = `<script>alert("x")</script>'&`;

  test('is escaped everywhere in the HTML', () => {
    const hostile = {
      baseUrl: attack,
      models: [attack],
      contact: attack,
      plans: [{ ...plan, items: [{ id: 'a', name: attack, icon: '', value: 1, models: [attack] }] }],
    };
    const body = html(hostile);
    expect(body).not.toMatch(/<script/i);
    expect(body).toContain('&lt;script&gt;');
    expect(body.match(/&(?!amp;|lt;|gt;|quot;|#39;)/g)).toBeNull();
  });

  test('cannot leave the quotes of the shell example', () => {
    expect(text({ models: [`it's`] })).toContain(String.raw`"model":"it'\''s"`);
  });

  test('brings no terminal control codes into the plain text', () => {
    expect(text({ contact: 'a\u001B[31mb' })).toContain('Contact: a[31mb');
  });
});

describe('headers', () => {
  test('allow the page its own style sheet and nothing else', () => {
    const { headers, body } = page(facts, 'text/html');
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(body).toContain(`<style>${pageStyle}</style>`);
    expect(body).not.toMatch(/ style=| on\w+=|<link|<img/);
  });

  test('name the hash of the style sheet as it is', () => {
    expect(pageStyleHash).toBe(`sha256-${createHash('sha256').update(pageStyle).digest('base64')}`);
  });

  test('keep caches from mixing the two variants', () => {
    expect(page(facts, 'text/html').headers['vary']).toBe('accept');
    expect(page(facts, '*/*').headers).toMatchObject({
      vary: 'accept',
      'content-type': 'text/plain; charset=utf-8',
    });
  });
});
