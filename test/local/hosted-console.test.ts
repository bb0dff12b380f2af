/** The deployed operators' console: its bundle, its function and its path of the distribution, with a login at an issuer. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';

let stack: LocalStack;
let base: string;
beforeAll(async () => {
  stack = await startLocalStack({ env: { RELAY_CONSOLE: '1' } });
  base = new URL('/console/', stack.baseUrl).href;
});
afterAll(() => stack.stop());

/** Follows redirects and keeps the console's cookies as a browser does, and chooses the person at the issuer. */
async function logIn(name: string): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const cookies = new Map<string, string>();
  const ask = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const headers = { 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none', cookie };
    const answer = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const each of answer.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      cookies.set(key, value);
    }
    return answer;
  };
  for (let url = base, hops = 0; hops < 8; hops += 1) {
    const answer = await ask(url);
    const location = answer.headers.get('location');
    if (location === null) break;
    const next = new URL(location, url);
    if (next.pathname === '/authorize') next.searchParams.set('as', name);
    url = next.href;
  }
  return (path, init) => ask(new URL(path, base).href, init);
}

it('logs people in by the claims of their issuer, each with the pages of their role', async () => {
  const [vera, olga, nobody] = await Promise.all([logIn('vera'), logIn('olga'), logIn('nobody')]);
  const seen = async (answer: Promise<Response>): Promise<[number, boolean]> => {
    const { status, text } = await answer.then(async (got) => ({
      status: got.status,
      text: await got.text(),
    }));
    return [status, text.includes('<h2>Channels <')];
  };
  expect(await seen(vera('.'))).toEqual([200, true]);
  expect(await seen(olga('.'))).toEqual([200, true]);
  expect((await seen(nobody('.')))[1]).toBe(false);
  expect((await vera('settings/plans/1')).status).toBe(403);
  expect((await olga('settings/plans/1')).status).toBe(200);
});
