import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createConsole } from '../../infra/ops/console/console.ts';
import { serveConsole, Session, idleMs, tokenMs } from '../../infra/ops/console/serve.ts';
import { enter, startConsoleRig, tokenIn, watchedBy, type ConsoleRig, type Visitor } from './console-rig.ts';
import { put } from './large-relay.ts';

let rig: ConsoleRig;
let visitor: Visitor;
let address: string;
beforeAll(async () => {
  rig = await startConsoleRig();
  await put(rig.client, 'accounts', [{ account: 'acme' }]);
  const served = await rig.serve();
  ({ address } = served);
  visitor = await enter(served);
});
afterAll(async () => rig.stop());

/** A request with any Host header, which fetch does not allow. */
function rawRequest(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  const { hostname, port } = new URL(visitor.base);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, (reply) => {
      text(reply).then(() => resolve(reply.statusCode ?? 0), reject);
    });
    sent.on('error', reject).end();
  });
}

const formToken = async (): Promise<string> => tokenIn(await visitor.page('customers/acme/grant'));
const grantFields = { amount: '5', reason: 'test', id: 'g-1' };

describe('the session of a console', () => {
  it('admits one browser with the address: a second one is rejected, and learns about no page', async () => {
    const second = await fetch(address, { redirect: 'manual' });
    expect(second.status).toBe(403);
    expect(second.headers.get('set-cookie')).toBeNull();
    for (const path of ['', 'customers', 'nowhere'])
      expect((await fetch(visitor.base + path)).status).toBe(403);
  });

  it('sets a cookie that scripts and other sites cannot read, on a path that only this session knows', async () => {
    const served = await rig.serve();
    const reply = await fetch(served.address, { redirect: 'manual' });
    const path = reply.headers.get('location');
    expect(path).toMatch(/^\/[0-9a-f]{24}\/$/);
    expect(reply.headers.get('set-cookie')).toMatch(
      new RegExp(`^relay_console=[0-9a-f]{64}; Path=${path}; HttpOnly; SameSite=Strict$`),
    );
    expect(reply.headers.get('location')).not.toContain(new URL(served.address).searchParams.get('token'));
  });

  it('accepts a token for a minute, and a cookie for 30 minutes after the last request', () => {
    const clock = { ms: 0 };
    const make = () =>
      new Session(
        {
          clock: { now: () => clock.ms, sleep: async () => undefined },
          random: { secretKey: () => '', hex: (bytes) => 'ab'.repeat(bytes) },
        },
        { name: 'li', role: 'operator' },
      );
    const identityIn = (session: Session, cookie: string | null) =>
      session.identityOf(new Request('http://localhost/', { headers: cookie === null ? {} : { cookie } }));
    const late = make();
    clock.ms = tokenMs + 1;
    expect([late.exchange(late.token), late.isOver()]).toEqual([undefined, true]);

    const session = make();
    expect([identityIn(session, 'relay_console='), session.exchange('')]).toEqual([undefined, undefined]);
    const cookie = session.exchange(session.token)?.split(';')[0] ?? '';
    expect(session.exchange(session.token)).toBeUndefined();
    for (const cookies of [`other=1; ${cookie}`, cookie]) {
      clock.ms += idleMs - 1;
      expect(identityIn(session, cookies)).toMatchObject({ name: 'li' });
    }
    for (const other of [null, '', 'relay_console=', cookie.slice(0, -2)])
      expect(identityIn(session, other)).toBeUndefined();
    clock.ms += idleMs + 1;
    expect(identityIn(session, cookie)).toBeUndefined();
  });
});

describe('a request to the console', () => {
  it('with the name of another host is rejected, with and without the cookie', async () => {
    const { pathname } = new URL(visitor.base);
    const { cookie } = visitor;
    for (const host of ['evil.example', `evil.example:${new URL(visitor.base).port}`, '127.0.0.1:1'])
      expect(await rawRequest(`${pathname}customers`, { host, cookie })).toBe(421);
    const token = new URL((await rig.serve()).address).searchParams.get('token');
    expect(await rawRequest(`/enter?token=${token}`, { host: 'evil.example' })).toBe(403);
  });

  it('that writes is rejected from another site, without Origin, and without the token of this session', async () => {
    const form = { ...grantFields, form_token: await formToken() };
    const path = 'customers/acme/grant';
    const headers: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'http://127.0.0.1:1' },
      { origin: visitor.origin.replace('http:', 'https:') },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const each of headers) expect((await visitor.post(path, form, each)).status).toBe(403);
    for (const fields of [grantFields, { ...form, form_token: 'f'.repeat(64) }])
      expect((await visitor.post(path, fields)).status).toBe(403);
    const { pathname } = new URL(visitor.base);
    expect(await rawRequest(pathname + path, { cookie: visitor.cookie }, 'POST')).toBe(403);
    expect((await visitor.post(path, form)).status).toBe(303);
  });

  it('that no browser sends is rejected, without an error of the console', async () => {
    const { cookie, base } = visitor;
    const { host, pathname } = new URL(base);
    expect(await rawRequest(pathname, { host: `a@${host}`, cookie })).toBe(400);
    expect(await rawRequest(pathname, { host, cookie }, 'HEAD')).toBe(400);
    expect(rig.faults).toEqual([]);
  });

  it('that is huge is rejected, and so is a form of another type', async () => {
    const form_token = await formToken();
    const large = { amount: '1', note: 'x'.repeat(400_000), form_token };
    expect((await visitor.post('customers/acme/grant', large)).status).toBe(413);
    const many = Object.fromEntries(Array.from({ length: 2_100 }, (_, at) => [`f${at}`, 'x']));
    expect((await visitor.post('customers/acme/grant', { ...many, form_token })).status).toBe(413);
    expect((await visitor.get(`customers?name=${'x'.repeat(5000)}`)).status).toBe(414);
    const json = await fetch(`${visitor.base}customers/acme/grant`, {
      method: 'POST',
      headers: { cookie: visitor.cookie, origin: visitor.origin, 'content-type': 'application/json' },
      body: '{}',
    });
    expect(json.status).toBe(400);
  });

  it('for a file gets only files that pages load', async () => {
    const page = await visitor.page('');
    const [, style = ''] = /href="(static\/[^"]+\.css)"/.exec(page) ?? [];
    const reply = await visitor.get(style);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('text/css; charset=utf-8');
    const { pathname, host } = new URL(visitor.base);
    for (const path of [
      '',
      '../package.json',
      '..%2f..%2fpackage.json',
      '%2e%2e/%2e%2e/package.json',
      'enhance.js',
    ])
      expect([403, 404]).toContain(
        await rawRequest(`${pathname}static/${path}`, { cookie: visitor.cookie, host }),
      );
  });

  it('is answered with headers that forbid foreign content, framing and caching', async () => {
    for (const path of ['', 'nowhere', 'customers/none', 'static/none.js']) {
      const { headers } = await visitor.get(path);
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; .*frame-ancestors 'none'$/,
      );
      expect(headers.get('content-security-policy')).not.toMatch(/unsafe|http|\*/);
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('referrer-policy')).toBe('same-origin');
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('never redirects outside the base path', async () => {
    const form = { ...grantFields, id: 'g-2', form_token: await formToken() };
    const reply = await visitor.post('customers/acme/grant?back=https://evil.example', form);
    const base = new URL(visitor.base).pathname;
    expect(reply.headers.get('location')).toMatch(new RegExp(`^${base}confirm/[0-9a-f]{32}$`));
    for (const path of [
      '//evil.example',
      '/\\evil.example',
      'javascript:alert(1)',
      'confirm/https://evil.example',
    ]) {
      const there = await visitor.get(path);
      expect(there.headers.get('location')).toBeNull();
      const links = [...(await there.text()).matchAll(/href="([^"]*)"/g)].map(([, link = '']) => link);
      const led = links.filter((link) => link !== 'data:,').map((link) => new URL(link, visitor.base).href);
      expect(led.filter((link) => !link.startsWith(visitor.base))).toEqual([]);
    }
    expect(await visitor.page('customers?order=spent')).toContain('href="./customers?order=spent#content"');
  });
});

describe('a live page', () => {
  it('is only for this session and host, blocks no other page, and ends with the console', async () => {
    const served = await rig.serve({ readOnly: true });
    const one = await enter(served);
    const path = watchedBy(await one.page('')).replace('live?hours=1', 'requests/live?live=on');
    expect((await fetch(one.base + path)).status).toBe(403);
    const { pathname } = new URL(one.base);
    expect(await rawRequest(pathname + path, { host: 'evil.example', cookie: one.cookie })).toBe(403);
    expect((await one.get(path.replace('live=on', 'from=soon'))).status).toBe(400);
    const reply = await one.get(path);
    expect(reply.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(reply.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    const reader = reply.body!.getReader();
    // This rig has tables but no log.
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toContain('the log groups of this relay are unknown');
    expect(await one.page('customers')).toContain('acme');
    served.stop();
    await expect(reader.read()).rejects.toThrow('terminated');
    await served.ended;
    expect(rig.faults).toEqual([]);
  });
});

it('streams at most three live pages, and another one once a browser has left', async () => {
  const one = await enter(await rig.serve({ readOnly: true }));
  const path = watchedBy(await one.page(''));
  const replies = await Promise.all([one.get(path), one.get(path), one.get(path)]);
  expect([...replies, await one.get(path)].map(({ status }) => status)).toEqual([200, 200, 200, 503]);
  await replies[0]?.body?.cancel();
  await expect.poll(async () => (await one.get(path)).status).toBe(200);
});

it('removes a full key from the address of a search, and finds it by its hint', async () => {
  const secret = `sk-${'Q'.repeat(44)}wXyZ`;
  await put(rig.client, 'keys', [{ hash: 'c'.repeat(64), account: 'acme', hint: 'sk-QQQQ...wXyZ' }]);
  const one = await enter(await rig.serve({ readOnly: true }));
  for (const path of ['find?q=', 'keys?text=']) {
    const reply = await one.get(path + secret);
    expect([reply.status, reply.headers.get('location')]).toEqual([303, expect.not.stringContaining(secret)]);
    expect(await one.follow(reply)).toContain('sk-QQQQ...wXyZ');
  }
});

describe('a page that fails', () => {
  it('reports the failure without a stack trace, and logs the error in the process', async () => {
    const tables = async () => {
      throw new Error('inner words with sk-secret-of-nobody');
    };
    const ports = { ...rig.ports, config: { ...rig.ports.config, tables } };
    const broken = await enter(await rig.serve({ ports }));
    const reply = await broken.get('');
    const page = await reply.text();
    expect(reply.status).toBe(500);
    expect(page).toContain('Something went wrong');
    expect(page).not.toMatch(/inner words|sk-secret|\.ts:|node:/);
    expect(rig.faults.splice(0).map(String)).toEqual(['Error: inner words with sk-secret-of-nobody']);
  });
});

it('depends only on a request and an identity: two identities do not see each other’s plans', async () => {
  const options = { hosts: ['console.example'], base: '/', where: 'relay' };
  const handle = createConsole({ ports: rig.ports, options, onFault: (error) => rig.faults.push(error) });
  const li = { name: 'li', formToken: 'a'.repeat(64), role: 'operator' as const };
  const wei = { ...li, name: 'wei', formToken: 'b'.repeat(64) };
  const headers = { host: 'console.example', origin: 'https://console.example' };
  const body = new URLSearchParams({ ...grantFields, id: 'g-3', form_token: li.formToken });
  const at = (path: string) => `https://console.example/${path}`;
  const sent = await handle(new Request(at('customers/acme/grant'), { method: 'POST', headers, body }), li);
  const path = (sent.headers.get('location') ?? '').slice(1);
  expect((await handle(new Request(at(path), { headers }), li)).status).toBe(200);
  expect((await handle(new Request(at(path), { headers, method: 'HEAD' }), li)).status).toBe(405);
  expect((await handle(new Request(at(path), { headers }), wei)).status).toBe(404);
});

it('reports a used or invalid port as an ordinary error', async () => {
  const words = { readOnly: true, where: 'relay', name: 'li', onFault: () => undefined };
  const taken = Number(new URL(address).port);
  for (const [port, why] of [
    [taken, `port ${taken} is in use: `],
    [99_999, 'port 99999 is not available'],
  ] as const)
    await expect(serveConsole(rig.ports, { ...words, port })).rejects.toMatchObject({
      message: expect.stringContaining(why),
      exitCode: 2,
    });
});

it('starts as a command that prints one address, serves it, and exits at Ctrl-C', async () => {
  const program = new URL('../../infra/ops/cli/main.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, 'console', '--json', '--read-only'], {
    env: { PATH: process.env['PATH'] ?? '', AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const errors = text(child.stderr);
  const ended = once(child, 'exit');
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const { address: own } = JSON.parse(line) as { address: string };
  const one = await enter({ address: own, ended: Promise.resolve(), stop: () => undefined });
  const page = await one.page('customers');
  expect(page).toContain('acme');
  expect(page).toContain('read-only');
  child.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  expect(await errors).not.toContain(new URL(own).searchParams.get('token'));
});

describe('the console of npm start', () => {
  const clock = { now: () => Date.now(), sleep: async () => undefined };
  const random = { secretKey: () => '', hex: (bytes: number) => randomBytes(bytes).toString('hex') };
  const start = (kept: string) => new Session({ clock, random }, { name: 'local', role: 'operator' }, kept);
  const visit = (cookie: string) => new Request('http://127.0.0.1/', { headers: { cookie } });

  it('keeps its address, session and forms after a restart, but not with another secret', () => {
    const [first, restarted, other] = ['a', 'a', 'b'].map((each) => start(each.repeat(64)));
    const cookie = first?.exchange('a'.repeat(64))?.split(';')[0] ?? '';
    expect(first?.exchange('a'.repeat(64))).toContain(cookie);
    expect(restarted?.base).toBe(first?.base);
    expect(restarted?.identityOf(visit(cookie))?.formToken).toBe(first?.identityOf(visit(cookie))?.formToken);
    expect(restarted?.isOver()).toBe(false);
    expect(other?.identityOf(visit(cookie))).toBeUndefined();
    expect(other?.exchange('a'.repeat(64))).toBeUndefined();
    expect(new Set([first?.base, cookie, first?.token].map((each) => each?.slice(-20))).size).toBe(3);
  });
});

it('finds a customer by its full name at once, and by a part of it page by page, however many there are', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `2026${String(at).padStart(4, '0')}`);
  const note = 'x'.repeat(300_000);
  await put(
    rig.client,
    'accounts',
    names.map((account) => ({ account, note })),
  );
  const one = await enter(await rig.serve({ readOnly: true }));
  const found = new Set<string>();
  let pages = 0;
  for (let at: string | undefined = 'find?q=2026'; at; pages += 1) {
    const page = await one.page(at);
    for (const [, name = ''] of page.matchAll(/href="customers\/(\d+)"/g)) found.add(name);
    at = /<a href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([[...found].toSorted(), pages > 1]).toEqual([names, true]);
  for (const name of names) {
    expect(await one.page(`find?q=${name}`)).toContain(`href="customers/${name}"`);
    expect(await one.page(`customers?name=${name}`)).toMatch(/href="customers\/\d+"|rel="next"/);
  }
});
