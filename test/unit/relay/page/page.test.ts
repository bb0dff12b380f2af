import { describe, expect, test } from 'vitest';
import { answerPage } from '../../../../shared/relay/page/models-page.ts';
import type { PageFacts } from '../../../../shared/relay/page/page-facts.ts';
import { pageScriptPath } from '../../../../shared/relay/page/built-pages.ts';
import { modelsInEnglish } from '../../../../shared/relay/page/english.ts';
import { pageStyle } from '../../../../shared/relay/page/page-kit.ts';

const facts: PageFacts = {
  words: modelsInEnglish,
  baseUrl: 'https://relay.example/v1',
  models: ['alpha', 'beta', 'gamma'],
  modelFacts: {},
  charges: [
    { id: 1, type: 'token-billing', models: ['alpha'], input: 0.0000015, output: 0.02, anonymous: false },
    { id: 2, type: 'times-billing', models: ['beta'], input: 0, output: 0.1, anonymous: false },
    { id: 3, type: 'times-billing', models: ['alpha'], input: 0, output: 99, anonymous: false },
  ],
  plans: [],
  contact: '',
  relayClosed: false,
  nowMs: 0,
  aliases: [],
  resting: new Set(),
  changes: [],
  notices: [],
  timeZone: 'UTC',
  accountPage: true,
};
const plan = {
  level: 2,
  price: 30,
  items: [
    { id: 'chat', name: 'Chat', icon: '', value: 1000, models: ['alpha', 'beta'] },
    { id: 'all', name: '', icon: '', value: -1, models: ['gamma'] },
  ],
};

const html = (changes: Partial<PageFacts> = {}) => answerPage({ ...facts, ...changes }, 'text/html,*/*').body;
const text = (changes: Partial<PageFacts> = {}) => answerPage({ ...facts, ...changes }, '*/*').body;

/** Without tags and with single spaces. */
const wordsOf = (body: string): string => body.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

describe.each([
  ['HTML', html],
  ['plain text', text],
])('the page as %s', (_name, render) => {
  test('names the base URL and every model’s price by its first rule, per million tokens', () => {
    const body = wordsOf(render());
    expect(body).toContain('https://relay.example/v1');
    expect(body).toMatch(/alpha (¥0\.0015 ¥0\.0015 ¥20|¥0\.0015 in, ¥20 out)/);
    expect(body).toMatch(/beta ¥0\.1 per call/);
    expect(body).toMatch(/gamma free/);
    expect(body).not.toContain('¥99');
  });

  test('shows the current price with its cache price and tiers', () => {
    const [now, ...others] = facts.charges;
    const more = {
      cached_input: 0.01,
      cache_write: 0.6,
      tiers: [{ above: 200_000, input: 0.2, output: 0.3 }],
      service_tiers: { flex: 0.5 },
    };
    const charges = [{ ...now!, input: 0.5, ...more }, ...others, { ...now!, id: 9, from: 1, input: 7 }];
    const body = wordsOf(render({ charges }));
    expect(body).toMatch(
      /alpha (¥500 ¥10 cache write ¥600 ¥20|¥500 in, ¥10 cached, cache write ¥600, ¥20 out)/,
    );
    expect(body).toMatch(/over 200,000 input tokens:? (¥200 ¥200 ¥300|¥200 in, ¥300 out)/);
    expect(body).toMatch(/service tier flex:? 0\.5× these prices/);
    expect(wordsOf(render({ charges, nowMs: 1 }))).toMatch(/alpha (¥7000 ¥7000 ¥20|¥7000 in, ¥20 out)/);
  });

  test('shows the price of the hour and its end, and the prices of other hours', () => {
    const [first, ...others] = facts.charges;
    const hours = { name: 'peak', from: '09:00', to: '12:00', zone: 'Asia/Shanghai' };
    const windows = [
      { ...hours, factor: 2 },
      { ...hours, name: 'night', from: '22:00', to: '06:00', input: 0.1, output: 0.2 },
    ];
    const charges = [{ ...first!, input: 0.5, cached_input: 0.5, windows }, ...others];
    const at = (text: string) => wordsOf(render({ charges, nowMs: Date.parse(text) }));
    const peak = at('2026-11-30T02:00:00Z');
    expect(peak).toMatch(/alpha (¥1000 ¥1000 ¥40|¥1000 in, ¥40 out)/);
    expect(peak).toMatch(/now:? this price until 30 November 2026, 04:00 UTC/);
    const fromMs = Date.parse('2026-11-30T03:00:00Z');
    const changes = [{ fromMs, rule: { ...first!, from: fromMs }, models: ['alpha'] }];
    expect(wordsOf(render({ charges, changes, nowMs: fromMs - 60_000 }))).toMatch(
      /this price until 30 November 2026, 03:00 UTC/,
    );
    expect(peak).toMatch(/at other hours:? (¥500 ¥500 ¥20|¥500 in, ¥20 out)/);
    expect(peak).toMatch(/peak: 09:00-12:00 Asia\/Shanghai:? 2× these prices/);
    expect(peak).toMatch(/night: 22:00-06:00 Asia\/Shanghai:? (¥100 ¥100 ¥200|¥100 in, ¥200 out)/);
    expect(at('2026-11-30T15:00:00Z')).toMatch(/alpha (¥100 ¥100 ¥200|¥100 in, ¥200 out)/);
    expect(at('2026-11-30T06:00:00Z')).toMatch(/alpha (¥500 ¥500 ¥20|¥500 in, ¥20 out)/);
  });

  test('announces prices with their windows', () => {
    const windows = [{ name: 'peak', from: '09:00', to: '12:00', zone: 'UTC', factor: 2 }];
    const rule = { ...facts.charges[0]!, input: 0.001, windows };
    const body = wordsOf(
      render({ changes: [{ fromMs: Date.parse('2026-12-01'), rule, models: ['alpha'] }] }),
    );
    expect(body).toMatch(
      /from 1 December 2026:? ¥1 .*from 1 December 2026, peak: 09:00-12:00 UTC:? 2× these/,
    );
  });

  test('announces prices with their day in the relay’s time zone', () => {
    const [now] = facts.charges;
    const from = Date.parse('2026-11-30T16:00:00Z');
    const changes = [{ fromMs: from, rule: { ...now!, input: 0.001 }, models: ['alpha'] }];
    expect(wordsOf(render({ changes, timeZone: 'Asia/Shanghai' }))).toMatch(
      /alpha ¥0\.0015.*from 1 December 2026:? ¥1 .*beta/,
    );
    expect(wordsOf(render({ changes }))).toMatch(/from 30 November 2026, 16:00 UTC/);
  });

  test('shows notices with their models and their end', () => {
    const notices = [{ text: 'Back soon', from: null, until: 1_796_083_200, models: ['beta'] }];
    const body = wordsOf(render({ notices }));
    expect(body).toMatch(/Back soon/);
    expect(body).toMatch(/until 1 December 2026/i);
    expect(body).toMatch(/Back soon.*beta.*alpha/);
  });

  test('marks models in cooldown as unavailable', () => {
    const body = wordsOf(render({ resting: new Set(['beta']) }));
    expect(body).toMatch(/beta unavailable ¥0\.1 per call/);
    expect(body).not.toMatch(/alpha unavailable/);
  });

  test('shows how to connect with curl, SDKs and coding agents', () => {
    const body = render();
    expect(body).toMatch(/wire_api = ("|&quot;)responses/);
    expect(body).toContain('@ai-sdk/openai-compatible');
    expect(body).toContain('createOpenAICompatible(');
    expect(body).toContain('{env:RELAY_KEY}');
    expect(body).toContain('curl -N https://relay.example/v1/chat/completions');
    expect(body).toContain('new OpenAI(');
    expect(body).toContain('OpenAI(base_url=');
  });

  test('shows plans only if there are any', () => {
    expect(render()).not.toContain('calls per month');
    const body = render({ plans: [plan] });
    expect(wordsOf(body)).toContain('¥30 per month');
    expect(wordsOf(body)).toMatch(/Chat ?: 1,000 calls per month \(alpha, beta\)/);
    expect(wordsOf(body)).toMatch(/all ?: unlimited calls \(gamma\)/);
  });

  test('shows the contact, and that the relay is closed', () => {
    const body = render({ contact: 'ops@relay.example', relayClosed: true });
    expect(wordsOf(body)).toMatch(/Contact: ?ops@relay.example/);
    expect(body).toContain('temporarily closed');
  });
});

describe('text from others', () => {
  const attack = `<script>alert("x")</script>'&`;

  test('is escaped everywhere in the HTML', () => {
    const hostile = {
      baseUrl: attack,
      models: [attack],
      contact: attack,
      aliases: [{ name: attack, models: [attack] }],
      resting: new Set([attack]),
      modelFacts: { [attack]: { about: attack, takes: [attack] } },
      notices: [{ text: attack, from: null, until: null, models: [attack] }],
      plans: [{ ...plan, items: [{ id: 'a', name: attack, icon: '', value: 1, models: [attack] }] }],
    };
    for (const body of [html(hostile), html({ ...hostile, model: attack })]) {
      expect(body.match(/<script[^>]*>/gi)).toEqual([`<script src="${pageScriptPath}" defer>`]);
      expect(body).toContain('&lt;script&gt;');
      expect(body.match(/&(?!amp;|lt;|gt;|quot;|#39;)/g)).toBeNull();
    }
  });

  test('cannot leave the quotes of the shell example', () => {
    expect(text({ models: [`it's`] })).toContain(String.raw`"model":"it'\''s"`);
  });

  test('leaves terminal control codes out of the plain text', () => {
    expect(text({ contact: 'a\u001B[31mb' })).toContain('Contact: a[31mb');
  });
});

describe('page headers', () => {
  test('allow only the page’s own style sheet and script', () => {
    const { headers, body } = answerPage(facts, 'text/html');
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'sha256-/,
    );
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(body).toContain(`<style>${pageStyle}</style>`);
    expect(body).not.toMatch(/ style=| on\w+=|<link|<img/);
  });

  test('keep caches from mixing the two variants', () => {
    expect(answerPage(facts, 'text/html').headers['vary']).toBe('accept, accept-language');
    expect(answerPage(facts, '*/*').headers).toMatchObject({
      vary: 'accept, accept-language',
      'content-type': 'text/plain; charset=utf-8',
    });
  });
});
