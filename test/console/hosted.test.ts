/** The deployed console: logins, the rights of each role, and the history, with an issuer that signs whatever a test wants. */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestOf, type UrlEvent } from '../../infra/ops/console/hosted/event.ts';
import { createHostedConsole } from '../../infra/ops/console/hosted/hosted.ts';
import { createOidcLogin } from '../../infra/ops/console/hosted/login.ts';
import { pages } from '../../infra/ops/console/pages/all-pages.ts';
import { may, chooseRequiredRole } from '../../infra/ops/console/visit/visit.ts';
import { startIssuer, type IssuerOptions, type LocalIssuer } from '../../infra/local/oidc.ts';
import { consoleOption } from '../../infra/local/console.ts';
import { Enforcer } from '../access/enforcer.ts';
import { evaluate } from '../access/policy-document.ts';
import { arnOf, rolePolicyOf } from '../access/template-policies.ts';
import { synthesize } from '../infra/synthesize.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { openSession } from '../../infra/ops/session/session.ts';
import { createConsoleStore } from '../../shared/adapters/dynamodb/console-store.ts';
import { generateHex } from '../../shared/adapters/system/node-ports.ts';
import { roles, type ConsoleStore, type Role } from '../../shared/operate/hosted-console.ts';
import { tablesOn } from '../support/sdk-tables.ts';
import { idAt } from '../ops/ledger-rig.ts';
import { runOps } from '../ops/run-ops.ts';
import { seenIn, startConsoleRig, tokenIn, watchedBy, type ConsoleRig } from './console-rig.ts';
import { put } from './large-relay.ts';

const host = '127.0.0.1:8787';
const origin = `http://${host}`;
const given = {
  roles: { viewer: ['viewers'], support: ['support', 'sam@example.com'], operator: ['Olga@example.com'] },
  supportRefundYuanADay: 1,
};
const people = {
  olga: { email: 'olga@example.com', email_verified: true },
  sam: { email: 'sam@example.com', email_verified: true },
  vera: { groups: ['others', 'viewers'] },
  liar: { email: 'olga@example.com' },
  worded: { email: 'olga@example.com', email_verified: 'true' },
  titled: { groups: ['sam@example.com', 'operator'] },
};
type Name = keyof typeof people;

let rig: ConsoleRig;
let enforcer: Enforcer;
let tables: Awaited<ReturnType<typeof startFaultProxy>>;
let issuer: LocalIssuer;
let tokenOf: IssuerOptions['tokenOf'];
let answer: ReturnType<typeof createHostedConsole>;
const refused: unknown[] = [];

/** A console on the same tables, with the rights of the deployed function and without waiting. */
async function openConsole(
  changed: (consoles: ConsoleStore) => ConsoleStore = (each) => each,
  supportRefundYuanADay = given.supportRefundYuanADay,
) {
  const session = await openSession({ stack: 'relay', endpoint: tables.endpoint, local: true }, {});
  let sleptMs = 0;
  const clock = { now: () => Date.now() + sleptMs, sleep: async (ms: number) => void (sleptMs += ms) };
  const ports = { ...session.ports, clock, consoles: changed(session.ports.consoles) };
  const portsOf = (name: string) => ({ ...session.portsOf(name), clock });
  const oidc = { issuer: issuer.issuer, clientId: 'relay', clientSecret: 'env:SECRET' };
  const login = createOidcLogin({
    options: { ...given, oidc },
    isLocal: true,
    clock,
    secretOf: async () => 'secret',
  });
  return createHostedConsole({
    ports,
    portsOf,
    login,
    options: { ...given, supportRefundYuanADay },
    where: 'relay',
    isLocal: true,
    onFault: (error) => rig.faults.push(error),
    onRefused: (error) => void refused.push(error),
  });
}

beforeAll(async () => {
  rig = await startConsoleRig();
  issuer = await startIssuer({
    clientId: 'relay',
    clientSecret: 'secret',
    people,
    tokenOf: (claims, signed) => tokenOf?.(claims, signed) ?? signed(claims),
  });
  const { template } = synthesize({ console: consoleOption });
  enforcer = new Enforcer(new Map([['console', rolePolicyOf(template, 'ConsoleRole')]]));
  enforcer.localPolicy = 'console';
  tables = await startFaultProxy({ upstream: rig.emulator.endpoint, refuse: enforcer.refuse });
  answer = await openConsole();
  await put(rig.client, 'accounts', [{ account: 'acme' }]);
});
afterAll(async () => {
  await issuer.close();
  await tables.close();
  await rig.stop();
});

/** A browser that keeps cookies and opens pages, but follows no redirect by itself. */
class Browser {
  cookies = new Map<string, string>();

  async open(at: string, init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none', cookie, ...init.headers };
    const reply = await answer(new Request(new URL(at, `${origin}/console/`), { ...init, headers }));
    for (const each of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      if (/Max-Age=0/.test(each)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return reply;
  }

  page = async (at: string): Promise<string> => (await this.open(at)).text();

  async post(at: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
    const body = new URLSearchParams(fields);
    return this.open(at, {
      method: 'POST',
      body,
      headers: { origin, 'sec-fetch-site': 'same-origin', ...headers },
    });
  }

  /** Goes to the issuer; returns the address that the issuer redirects to. */
  async begin(name: string, to = ''): Promise<string> {
    const reply = await this.open(`login?to=${encodeURIComponent(to)}`);
    const chosen = `${reply.headers.get('location')}&as=${name}`;
    const back = await fetch(chosen, { redirect: 'manual' });
    return back.headers.get('location') ?? '';
  }

  async login(name: Name, to = ''): Promise<Response> {
    return this.open(await this.begin(name, to));
  }

  /** Fills in a form, submits it, and confirms the preview. */
  async carryOut(at: string, fields: Record<string, string>): Promise<Response> {
    const confirm = await this.proposed(at, fields);
    return this.post(confirm.at, confirm.fields);
  }

  async proposed(at: string, fields: Record<string, string>) {
    const form = await this.page(at);
    const own = { form_token: tokenIn(form), seen: seenIn(form) };
    const reply = await this.post(at, { ...own, ...fields });
    if (reply.status !== 303) throw new Error(await reply.text());
    const confirm = new URL(reply.headers.get('location') ?? '', origin).pathname;
    return { at: confirm, fields: { form_token: own.form_token } };
  }
}

async function loggedIn(name: Name): Promise<Browser> {
  const browser = new Browser();
  expect((await browser.login(name)).status).toBe(303);
  return browser;
}

describe('a login', () => {
  it('fails for a person whom the issuer does not know', async () => {
    expect(await new Browser().begin('constructor')).toBe('');
  });

  it('returns to the requested page, with a cookie that scripts cannot read', async () => {
    const browser = new Browser();
    const first = await browser.open('customers?order=spent');
    expect(first.headers.get('location')).toBe('/console/login?to=customers%3Forder%3Dspent');
    const reply = await browser.login('olga', 'customers?order=spent');
    expect(reply.headers.get('location')).toBe('/console/customers?order=spent');
    expect(reply.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^relay-console=[0-9a-f]{16}\.[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax$/),
      expect.stringContaining('relay-console-login=; Path=/'),
    ]);
    expect(await browser.page('customers')).toMatch(/olga@example\.com[^]*Log out[^]*acme/);
  });

  it.each([
    '//evil.example/',
    '/\\evil.example',
    'https://evil.example/',
    '../v1/models',
    '..%2f..%2fv1',
    'javascript:alert(1)',
    'login',
    'callback?code=x',
    '\r\nset-cookie: a=b',
  ])('never redirects away from the console: %j', async (to) => {
    const reply = await new Browser().login('olga', to);
    const location = new URL(reply.headers.get('location') ?? '', origin);
    expect(location.href).toMatch(new RegExp(`^${origin}/console/(?!login|callback)`));
    expect(reply.headers.get('set-cookie')).not.toContain('a=b');
  });

  it.each(['liar', 'worded', 'titled'] as const)(
    'assigns no role by an unverified address, or by a group named like a role: %s',
    async (name) => {
      const browser = new Browser();
      const reply = await browser.login(name);
      expect([reply.status, await reply.text()]).toEqual([403, expect.stringContaining('has no role')]);
      expect(browser.cookies.size).toBe(0);
    },
  );

  it('calls an unresponsive issuer only once in 15 seconds, however many logins start', async () => {
    let [nowMs, asked] = [0, 0];
    const down = { issuer: 'http://127.0.0.1:1', clientId: 'relay', clientSecret: 'env:SECRET' };
    const login = createOidcLogin({
      options: { ...given, oidc: down },
      isLocal: true,
      clock: { now: () => nowMs },
      secretOf: async () => `secret ${(asked += 1)}`,
    });
    const tries = Array.from({ length: 20 }, () => login.begin(`${origin}/console/callback`));
    expect((await Promise.allSettled(tries)).filter(({ status }) => status === 'fulfilled')).toEqual([]);
    await expect(login.begin(origin)).rejects.toThrow('fetch failed');
    expect(asked).toBe(1);
    nowMs += 15_000;
    await expect(login.begin(origin)).rejects.toThrow('fetch failed');
    expect(asked).toBe(2);
  });

  it('sets a cookie that browsers accept, however long the requested address is', async () => {
    for (const to of ['\u6f22'.repeat(900), 'x'.repeat(8_000)]) {
      const browser = new Browser();
      await browser.begin('vera', to);
      expect(browser.cookies.get('relay-console-login')?.length).toBeLessThan(4_000);
    }
  });

  it('creates a new session whatever cookie existed, and ends the previous one', async () => {
    const browser = await loggedIn('olga');
    const before = browser.cookies.get('relay-console') ?? '';
    await browser.login('olga');
    const after = browser.cookies.get('relay-console');
    expect(after).not.toBe(before);
    browser.cookies.set('relay-console', before);
    expect((await browser.open('customers')).status).toBe(303);

    const planted = `${'a'.repeat(16)}.${'b'.repeat(64)}`;
    const victim = new Browser();
    victim.cookies.set('relay-console', planted);
    await victim.login('olga');
    expect(victim.cookies.get('relay-console')).not.toBe(planted);
  });

  it('is rejected from another browser, a second time, or without its state', async () => {
    const attacker = new Browser();
    const callback = await attacker.begin('sam');
    const victim = new Browser();
    expect((await victim.open(callback)).status).toBe(400);
    await victim.begin('olga');
    expect((await victim.open(callback)).status).toBe(403);
    expect(victim.cookies.has('relay-console')).toBe(false);

    const kept = new Map(attacker.cookies);
    expect((await attacker.open(callback)).status).toBe(303);
    const replayed = new Browser();
    replayed.cookies = kept;
    expect((await replayed.open(callback)).status).toBe(403);
    for (const bare of ['callback', 'callback?code=x', 'callback?error=access_denied&state=x'])
      expect((await new Browser().open(bare)).status).toBe(400);
  });

  it('is accepted once, even if the issuer accepts its codes twice', async () => {
    const browser = new Browser();
    const callback = await browser.begin('olga');
    const state = new URL(callback).searchParams.get('state') ?? '';
    expect([await rig.ports.consoles.isFirst(state), await rig.ports.consoles.isFirst(state)]).toEqual([
      true,
      false,
    ]);
    expect((await browser.open(callback)).status).toBe(403);
  });

  it.each<[string, NonNullable<IssuerOptions['tokenOf']>]>([
    ['for another client', (claims, signed) => signed({ ...claims, aud: 'another' })],
    ['of another issuer', (claims, signed) => signed({ ...claims, iss: 'https://evil.example' })],
    ['that has expired', (claims, signed) => signed({ ...claims, exp: claims.iat - 120 })],
    ['of another login', (claims, signed) => signed({ ...claims, nonce: 'x' })],
    ['without a login', (claims, signed) => signed({ ...claims, nonce: undefined })],
    ['without a signature', (claims) => unsigned({ alg: 'none' }, claims)],
    [
      'with an unknown signature',
      (claims, signed) => `${signed(claims).split('.').slice(0, 2).join('.')}.AAAA`,
    ],
    ['signed by an invalid key', (claims, signed) => signed(claims, { alg: 'HS256', kid: 'local' })],
    [
      'signed by a key that the issuer lacks',
      (claims, signed) => signed(claims, { alg: 'RS256', kid: 'other' }),
    ],
  ])('is rejected with a token %s', async (_, made) => {
    tokenOf = made;
    try {
      const browser = new Browser();
      expect((await browser.login('olga')).status).toBe(403);
      expect(browser.cookies.size).toBe(0);
    } finally {
      tokenOf = undefined;
    }
  });
});

const unsigned = (header: object, claims: object): string =>
  `${[header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;

describe('a session', () => {
  const cookieOf = (browser: Browser): string => browser.cookies.get('relay-console') ?? '';

  it('is required by every page, and no page reveals anything without it', async () => {
    const browser = new Browser();
    for (const path of ['', 'customers', 'nowhere', 'static/none.js', 'requests/live']) {
      const reply = await browser.open(path);
      expect(reply.status).toBe(303);
    }
    expect((await browser.post('customers/acme/grant', { amount: '1' })).status).toBe(401);
    for (const value of ['', 'x', `${'a'.repeat(16)}.${'b'.repeat(64)}`, '__proto__.x']) {
      browser.cookies.set('relay-console', value);
      expect((await browser.open('customers')).status).toBe(303);
    }
  });

  it('ends with the logout button, also for copies of its cookie', async () => {
    const browser = await loggedIn('olga');
    const stolen = new Browser();
    stolen.cookies = new Map(browser.cookies);
    const form_token = tokenIn(await browser.page('customers'));
    expect((await browser.post('logout', { form_token: 'x' })).status).toBe(403);
    expect((await browser.post('logout', { form_token })).status).toBe(200);
    expect((await stolen.open('customers')).status).toBe(303);
  });

  it('ends at once when it is revoked, for one person or for all, and the next login works', async () => {
    const [olga, sam] = [await loggedIn('olga'), await loggedIn('sam')];
    await rig.ports.consoles.revoke('Olga@Example.com');
    expect([(await olga.open('customers')).status, (await sam.open('customers')).status]).toEqual([303, 200]);
    const again = await loggedIn('olga');
    expect((await again.open('customers')).status).toBe(200);
    await rig.ports.consoles.revoke('all');
    for (const each of [again, sam]) expect((await each.open('customers')).status).toBe(303);
    expect((await (await loggedIn('sam')).open('customers')).status).toBe(200);
  });

  it('can be revoked by the command line, which also shows the history', async () => {
    const ops = (...words: string[]) =>
      runOps(['console', ...words], { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint });
    const olga = await loggedIn('olga');
    await olga.carryOut('customers/acme/edit', { note: 'by olga' });
    const today = new Date().toISOString().slice(0, 10);
    const { output } = await ops('--history', today, '--json');
    expect(JSON.parse(output)[0]).toMatchObject({
      by: 'olga@example.com',
      role: 'operator',
      title: 'Edit acme',
    });
    expect((await ops('--history', today)).output).toMatch(
      /olga@example\.com \(operator\): Edit acme: .* -> /,
    );
    expect((await ops('--revoke', 'olga@example.com')).output).toContain(
      'Ended the sessions of olga@example.com',
    );
    expect((await olga.open('customers')).status).toBe(303);
  });

  it('ends after 30 minutes without use, and 8 hours after its login', async () => {
    const beginMs = Date.now();
    let nowMs = beginMs;
    const clock = { now: () => nowMs, sleep: async () => undefined };
    const consoles = createConsoleStore({
      tables: tablesOn(rig.client),
      stack: 'relay',
      clock,
      hex: generateHex,
    });
    const cookie = await consoles.beginSession({ name: 'olga@example.com', groups: [] });
    const minute = 60_000;
    nowMs += 29 * minute;
    expect(await consoles.session(cookie)).toMatchObject({ name: 'olga@example.com' });
    nowMs += 31 * minute;
    expect(await consoles.session(cookie)).toBeUndefined();

    nowMs = beginMs;
    const busy = await consoles.beginSession({ name: 'olga@example.com', groups: [] });
    for (let spent = 0; spent < 479; spent += 20) {
      nowMs = beginMs + spent * minute;
      expect(await consoles.session(busy)).toBeDefined();
    }
    nowMs = beginMs + 481 * minute;
    expect(await consoles.session(busy)).toBeUndefined();
  });

  it('has the current role of its person in the deployment, not the one at its login', async () => {
    const browser = await loggedIn('olga');
    const before = answer;
    const former = given.roles.operator;
    given.roles.operator = [];
    try {
      answer = await openConsole();
      expect((await browser.open('customers')).status).toBe(303);
    } finally {
      given.roles.operator = former;
      answer = before;
    }
  });

  it('is stored only as a hash', async () => {
    const browser = await loggedIn('olga');
    const rows = await rig.ports.tables.scan('runtime');
    expect(rows.some(({ id }) => String(id).startsWith('console-session#'))).toBe(true);
    const [, random = 'none'] = cookieOf(browser).split('.');
    expect(JSON.stringify(rows)).not.toContain(random);
  });
});

describe('a request', () => {
  it('for a live page is rejected after 30 in five minutes, for each person, across sessions', async () => {
    const watched = async (browser: Browser, live: string) => {
      const reply = await browser.open(live, { headers: { 'sec-fetch-dest': 'empty' } });
      await reply.body?.cancel();
      return reply.status;
    };
    const pageOf = async (browser: Browser) => watchedBy(await browser.page(''));
    const [sam, again, vera] = [await loggedIn('sam'), await loggedIn('sam'), await loggedIn('vera')];
    const [live, other] = [await pageOf(sam), await pageOf(again)];
    const many = await Array.fromAsync({ length: 31 }, () => watched(sam, live));
    // A boundary of five minutes may fall between them.
    const more = await Array.fromAsync({ length: 31 }, () => watched(again, other));
    expect([...many, ...more].filter((status) => status === 200).length).toBeLessThanOrEqual(60);
    expect(more).toContain(503);
    expect(await watched(vera, await pageOf(vera))).toBe(200);
  });

  it('writes only from this browser and site: forms of others, or without the token of this session, are rejected', async () => {
    const [olga, other] = [await loggedIn('olga'), await loggedIn('olga')];
    const at = 'customers/acme/grant';
    const form_token = tokenIn(await olga.page(at));
    const form = { amount: '1', id: 'g', form_token };
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: origin.replace('http:', 'https:') },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const headers of foreign) expect((await olga.post(at, form, headers)).status).toBe(403);
    expect((await olga.post(at, { ...form, form_token: '' })).status).toBe(403);
    expect((await other.post(at, form)).status).toBe(403);
    expect((await olga.post(at, form)).status).toBe(303);
  });

  it('of a script on a customers’ page of the same host gets no page', async () => {
    const browser = await loggedIn('olga');
    for (const dest of ['empty', 'iframe', 'script', ''])
      for (const path of ['', 'customers', 'customers/acme/grant'])
        expect((await browser.open(path, { headers: { 'sec-fetch-dest': dest } })).status).toBe(403);
    const { headers } = await browser.open('');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe|http|\*/);
  });

  it('of a script gets only parts of a page, and a stream only by the address in its page', async () => {
    const [browser, other] = [await loggedIn('vera'), await loggedIn('vera')];
    const live = watchedBy(await browser.page(''));
    const [, style = ''] = /href="(static\/[^"]*)"/.exec(await browser.page('')) ?? [];
    const script = { 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' };
    const statusOf = async (path: string, by = browser) => (await by.open(path, { headers: script })).status;
    for (const page of ['static/none.js', 'nowhere/live', 'customers/live', 'requests/live/live'])
      expect(await statusOf(page)).toBe(403);
    for (const stream of ['live?hours=1', 'requests/live?live=on', live.replace(/watch=./, 'watch=x')])
      expect(await statusOf(stream)).toBe(403);
    expect(await statusOf(live, other)).toBe(403);
    expect(await statusOf(style)).toBe(200);
    const watched = await browser.open(live, { headers: script });
    expect(watched.headers.get('content-type')).toMatch(/^text\/event-stream/);
    await watched.body?.cancel();
    const form_token = tokenIn(await browser.page('keys/check'));
    const posted = await browser.post('keys/live', { form_token }, script);
    expect(posted.status).toBe(403);
  });
});

describe('an event', () => {
  const event = (headers: Record<string, string>, more: Partial<UrlEvent> = {}): UrlEvent => ({
    headers: { 'x-relay-origin': 'secret', 'x-forwarded-host': 'llm.example.com', ...headers },
    rawPath: '/console/customers',
    rawQueryString: 'order=spent',
    isBase64Encoded: false,
    requestContext: { http: { method: 'GET' } },
    ...more,
  });
  const own = { local: false, originSecrets: ['old', 'secret'], publicHost: 'llm.example.com' };
  const statusOf = (made: Request | Response): number => (made instanceof Response ? made.status : 0);

  it('of the function is answered only through the distribution, and only for its own host', () => {
    const statuses = [
      requestOf(event({ 'x-relay-origin': 'guess' }), own),
      requestOf(event({ 'x-relay-origin': '' }), own),
      requestOf(event({}), { ...own, originSecrets: [] }),
      requestOf(event({ 'x-forwarded-host': 'evil.example' }), own),
      requestOf(event({ 'x-forwarded-host': 'llm.example.com:1' }), own),
      requestOf(event({ 'x-forwarded-host': 'd1.cloudfront.net.evil.example' }), {
        ...own,
        publicHost: undefined,
      }),
      requestOf(event({}, { requestContext: { http: { method: 'HEAD' } } }), own),
    ];
    expect(statuses.map(statusOf)).toEqual([403, 403, 403, 421, 421, 421, 400]);
    for (const host of ['llm.example.com', 'd1a2b3.cloudfront.net']) {
      const publicHost = host.endsWith('.net') ? undefined : host;
      const made = requestOf(event({ 'x-forwarded-host': host }), { ...own, publicHost });
      expect(made).toBeInstanceOf(Request);
      expect(made.url).toBe(`https://${host}/console/customers?order=spent`);
      expect(made.headers.get('x-relay-origin')).toBeNull();
    }
  });

  it.each(['//evil.example/console/', '/\\evil.example/', '/console/../../x'])(
    'stays on its host: %s',
    (rawPath) => {
      const made = requestOf(event({}, { rawPath }), own);
      if (made instanceof Request) expect(new URL(made.url).origin).toBe('https://llm.example.com');
      else expect(made.status).toBe(400);
    },
  );
});

interface Registered {
  path: string;
  needed: Role;
  isForm: boolean;
  /** No page links to it by GET. */
  isPosted?: true;
}

/** Every address that a page registers, including those of new pages. */
function registered(): Registered[] {
  const all: Registered[] = [];
  const read = (path: string) => void all.push({ path, needed: 'viewer', isForm: false });
  for (const addPages of pages)
    addPages({
      page: read,
      slowPage: read,
      live: read,
      file: (path, { isExport }) =>
        void all.push({ path, needed: isExport ? 'operator' : 'viewer', isForm: true, isPosted: true }),
      form: (path, route) => void all.push({ path, needed: chooseRequiredRole(route), isForm: true }),
    });
  return all;
}

describe('a role', () => {
  const names = { viewer: 'vera', support: 'sam', operator: 'olga' } as const;

  it.each(roles)('%s can open exactly the addresses that are registered for it', async (role) => {
    const browser = await loggedIn(names[role]);
    const form_token = tokenIn(await browser.page('keys/check'));
    const { search: watch } = new URL(watchedBy(await browser.page('')), origin);
    const all = registered();
    expect(all.length).toBeGreaterThan(35);
    for (const { path, needed, isForm, isPosted } of all) {
      const at = path.slice(1).replaceAll(/:\w+/g, '1') + (path.endsWith('/live') ? watch : '');
      const isAllowed = may({ role }, needed);
      const got = await browser.open(at);
      await got.body?.cancel();
      if (!isPosted) expect([role, 'GET', at, got.status === 403]).toEqual([role, 'GET', at, !isAllowed]);
      const sent = await browser.post(at, { form_token });
      await sent.body?.cancel();
      // A page without a form accepts no form.
      const isClosed = sent.status === (isForm ? 403 : 404);
      expect([role, 'POST', at, isClosed]).toEqual([role, 'POST', at, !isAllowed || !isForm]);
    }
  });

  it('below operator can only write refunds', () => {
    expect(registered().filter(({ needed }) => needed === 'support')).toEqual([
      { path: '/requests/:id/refund', needed: 'support', isForm: true },
    ]);
  });

  it('cannot confirm a form of another session or of a higher role', async () => {
    const [olga, other, vera] = [await loggedIn('olga'), await loggedIn('olga'), await loggedIn('vera')];
    const { at } = await olga.proposed('customers/acme/grant', { amount: '3', id: 'g-other' });
    for (const each of [other, vera]) {
      const form_token = tokenIn(await each.page('keys/check'));
      expect((await each.post(at, { form_token })).status).toBe(404);
      expect(await each.page(at)).toContain('This step has expired');
    }
    const grants = await rig.ports.tables.scan('grants');
    expect(grants.filter(({ grant_id: id }) => id === 'g-other')).toEqual([]);
  });

  it('of a viewer can compare an invoice, with the rights of the function', async () => {
    const vera = await loggedIn('vera');
    await put(rig.client, 'daily', [{ id: 'channel#gone', period: 'day#2026-10-07#m', calls: 1, bought: 2 }]);
    const form_token = tokenIn(await vera.page('channels/gone/invoice'));
    const sent = { form_token, csv: 'Model,Amount\nm,3', month: '2026-10' };
    const reply = await vera.post('channels/gone/invoice', sent);
    expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('50.0')]);
    const unknown = await vera.post('channels/none/invoice', sent);
    expect([unknown.status, await unknown.text()]).toEqual([422, expect.stringContaining('no channel none')]);
  });

  it('shows no button without the right to use it', async () => {
    const [vera, olga] = [await loggedIn('vera'), await loggedIn('olga')];
    expect(await vera.page('customers/acme')).not.toMatch(/Top up|\/edit"/);
    expect(await olga.page('customers/acme')).toMatch(/Top up/);
    expect(await vera.page('')).toContain('read-only');
  });
});

describe('a refund by support', () => {
  async function charged(tail: string): Promise<string> {
    const id = idAt('2026-11-10T12:00:00Z', tail);
    const row = {
      account: 'acme',
      id,
      at: '2026-11-10T12:00:05Z',
      kind: 'settled',
      model: 'm',
      key: '0123456789ab',
    };
    await put(rig.client, 'ledger', [{ ...row, charge: 9, reserved: 9, price: '1:tokens:1:1' }]);
    return id;
  }
  const refunds = async (id: string) =>
    (await rig.ports.tables.scan('grants')).filter(({ grant_id: grant }) => String(grant).includes(id));

  it('is counted against the daily limit before it is written, also many at once, except an operator’s', async () => {
    const sam = await loggedIn('sam');
    const ids = await Promise.all(Array.from({ length: 8 }, (_, at) => charged(`s${at}`)));
    const asked = [];
    for (const id of ids) asked.push(await sam.proposed(`requests/${id}/refund`, { amount: '0.3' }));
    const replies = await Promise.all(asked.map(({ at, fields }) => sam.post(at, fields)));
    const statuses = replies.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([303, 303, 303, 403, 403, 403, 403, 403]);
    const made = (await Promise.all(ids.map(refunds))).flat();
    expect(made.map(({ amount, _by }) => [amount, _by])).toEqual(
      Array.from({ length: 3 }, () => [0.3, 'sam@example.com']),
    );
    const refusal = replies.find(({ status }) => status === 403);
    expect(await refusal?.text()).toContain('refund at most ¥1.00 a day');

    const olga = await loggedIn('olga');
    const id = await charged('o');
    expect((await olga.carryOut(`requests/${id}/refund`, { amount: '5' })).status).toBe(303);
  });

  it('is rejected with the reason if the option is not an amount', async () => {
    answer = await openConsole((each) => each, 0.1234567891);
    try {
      const sam = await loggedIn('sam');
      const refusal = await sam.carryOut(`requests/${await charged('n')}/refund`, { amount: '0.01' });
      expect(refusal.status).toBe(403);
      expect(await refusal.text()).toContain('supportRefundYuanADay is invalid (0.1234567891)');
    } finally {
      answer = await openConsole();
    }
  });
});

describe('a secret of another purpose or host', () => {
  const evil = 'https://evil.example/v1';
  const vendor = 'https://api.vendor.example/v1';
  const bound = 'ssm:/relay/relay/channels/api.vendor.example/key';
  const checkout = { secret_key: 'ssm:/relay/relay/stripe', currency: 'usd' };
  const stripe = {
    live: true,
    webhook_secret: 'ssm:/relay/relay/hook',
    link_secret: 'secretsmanager:relay/links',
    rates: { usd: 7 },
    checkout,
  };
  const rows = {
    channels: [
      { id: 'old', endpoint: vendor, secret: 'ssm:/relay/relay/vendor', models: ['m'], state: true },
      { id: 'bound', endpoint: vendor, secret: bound, models: ['m'], state: true },
    ],
    settings: [
      { name: 'payments', value: { stripe } },
      { name: 'search', value: { type: 'tavily', secret: 'ssm:/relay/relay/search/api.tavily.com/key' } },
      { name: 'alerts', value: { secret: 'ssm:/relay/relay/alerts/hooks' } },
    ],
  };
  const seed = async () => {
    await put(rig.client, 'channels', rows.channels);
    await put(rig.client, 'settings', rows.settings);
  };
  afterAll(async () => {
    for (const table of ['channels', 'settings'] as const)
      for (const row of rows[table]) {
        const key = 'id' in row ? { id: row.id } : { name: row.name };
        await rig.ports.tables.write({ kind: 'remove', table, key, unchanged: {} });
      }
  });
  /** Whether the form was rejected, and none of its values was written. */
  const refuses = async (at: string, fields: Record<string, string>): Promise<boolean> => {
    const olga = await loggedIn('olga');
    const said = await olga.carryOut(at, fields).then(String, String);
    const written = JSON.stringify([
      await rig.ports.tables.scan('channels'),
      await rig.ports.tables.scan('settings'),
    ]);
    return (
      /store the secret with <code data-command>npx --no relay-ops secret new/.test(said) &&
      !written.includes('evil.example')
    );
  };

  it.each([
    'ssm:/relay/relay/stripe',
    'ssm:/relay/relay/hook',
    'secretsmanager:relay/links',
    'ssm:/relay/relay/payments/api.stripe.com/key',
    'ssm:/relay/relay/payments/links',
    'ssm:/relay/relay/search/api.tavily.com/key',
    'ssm:/relay/relay/alerts/hooks',
    'ssm:/relay/relay/console',
    'ssm:/relay/relay/console/oidc',
    'secretsmanager:relay/canary/key',
    'ssm:/relay/relay/vendor',
    bound,
  ])('is never sent by a new channel of an operator: %s', async (secret) => {
    await seed();
    const mine = { id: 'mine', type: 'openai', endpoint: evil, models: 'm', state: 'on' };
    for (const named of [secret, `env:X, ${secret}`])
      expect(await refuses('channels-new?type=openai', { ...mine, secret: named })).toBe(true);
  });

  it('is not sent by a channel whose address an operator changes, whatever its path', async () => {
    await seed();
    for (const id of ['old', 'bound']) {
      const form = { type: 'openai', models: 'm', state: 'on' };
      const secret = rows.channels.find((each) => each.id === id)?.secret ?? '';
      for (const other of [{ endpoint: evil }, { type: 'anthropic', endpoint: '' }])
        expect(await refuses(`channels/${id}/edit`, { ...form, secret, ...other })).toBe(true);
      // All other attributes of the row can be changed.
      const olga = await loggedIn('olga');
      const reply = await olga.carryOut(`channels/${id}/edit`, {
        ...form,
        endpoint: vendor,
        secret,
        weight: '3',
      });
      expect(reply.status).toBe(303);
    }
  });

  it('is not sent by its setting if an operator changes the address', async () => {
    await seed();
    const paths = {
      rates: 'usd = 7',
      'checkout.secret_key': checkout.secret_key,
      'checkout.currency': 'usd',
    };
    const { live: _, rates: __, checkout: ___, ...plain } = stripe;
    const sent = { ...plain, live: 'yes', ...paths, 'checkout.endpoint': 'https://evil.example' };
    const payments = Object.entries(sent).map(([name, text]) => [`value.stripe.${name}`, text]);
    expect(await refuses('settings/payments', Object.fromEntries(payments))).toBe(true);
    for (const secret of ['ssm:/relay/relay/search/api.tavily.com/key', 'ssm:/relay/relay/stripe']) {
      const form = {
        'value.type': 'searxng',
        'value.endpoint': 'https://evil.example',
        'value.secret': secret,
      };
      expect(await refuses('settings/search', form)).toBe(true);
    }
    const alerts = { 'value.webhook': 'https://evil.example', 'value.secret': 'ssm:/relay/relay/hook' };
    expect(await refuses('settings/alerts', alerts)).toBe(true);
  });
});

describe('a write', () => {
  it('records its author in the row and its result in the history, once even if submitted twice', async () => {
    const olga = await loggedIn('olga');
    const { at, fields } = await olga.proposed('customers/acme/edit', { price_group: '<b>twice</b>' });
    expect(await olga.page(at)).toContain('What will happen');
    const replies = await Promise.all([1, 2, 3].map(() => olga.post(at, fields)));
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status === 303)).toHaveLength(1);
    // Already done, or planned again after the row was written.
    expect(statuses.every((status) => [303, 404, 409].includes(status))).toBe(true);
    expect(await rig.ports.tables.get('accounts', 'acme')).toMatchObject({ _by: 'olga@example.com' });
    const vera = await loggedIn('vera');
    const page = await vera.page('history');
    expect(page).toMatch(/olga@example\.com, operator[^]*Edit acme[^]*&lt;b&gt;twice/);
    const [newest] = await rig.ports.consoles.history(new Date().toISOString().slice(0, 10));
    expect(newest).toMatchObject({
      by: 'olga@example.com',
      title: 'Edit acme',
      result: [expect.any(String)],
    });
  });

  it('of contact data is in the history without that data, and its form is not stored', async () => {
    const olga = await loggedIn('olga');
    const fields = { 'contact.email': 'eve@secret.example', note: 'say "hi", {Eve}' };
    expect((await olga.carryOut('customers/acme/edit', fields)).status).toBeLessThan(400);
    expect(await rig.ports.tables.get('accounts', 'acme')).toMatchObject({ note: fields.note });
    const lines = JSON.stringify(await rig.ports.consoles.history(new Date().toISOString().slice(0, 10)));
    expect(lines).toMatch(/note: changed[^\]]*contact\.email: changed/);
    expect(lines).not.toMatch(/secret\.example|Eve/);
    const kept = (await rig.ports.tables.scan('runtime')).map(({ body }) =>
      body instanceof Uint8Array ? gunzipSync(body).toString() : '',
    );
    // The result is stored for half an hour, to be shown and undone.
    const found = kept.filter((text) => text.includes('secret.example'));
    expect(found).toEqual([expect.stringMatching(/^\{"result":/)]);
  });

  it('is rejected if it differs from the preview', async () => {
    const olga = await loggedIn('olga');
    const row = { id: 'a', type: 'openai', endpoint: 'http://127.0.0.1:1', secret: 'env:X', state: true };
    await put(rig.client, 'channels', [{ ...row, models: ['m'] }]);
    const form_token = tokenIn(await olga.page('channels'));
    const asked = await olga.post('channels/a/switch', { form_token });
    const confirm = new URL(asked.headers.get('location') ?? '', origin).pathname;
    expect(await olga.page(confirm)).toContain('Disable a');
    await put(rig.client, 'channels', [{ ...row, models: ['m'], state: false }]);
    const reply = await olga.post(confirm, { form_token });
    expect([reply.status, await reply.text()]).toEqual([
      409,
      expect.stringContaining('no longer do what was shown'),
    ]);
    const [channel] = await rig.ports.tables.scan('channels');
    expect(channel).not.toHaveProperty('_by');
  });

  it('is rejected if its history line cannot be written', async () => {
    const olga = await loggedIn('olga');
    const { at, fields } = await olga.proposed('customers/acme/edit', { note: 'unseen' });
    const before = answer;
    answer = await openConsole((consoles) => ({
      ...consoles,
      append: async () => {
        throw new Error('the store is away');
      },
    }));
    try {
      expect((await olga.post(at, fields)).status).toBe(500);
    } finally {
      answer = before;
    }
    expect(rig.faults.splice(0).map(String)).toEqual(['Error: the store is away']);
    expect((await rig.ports.tables.get('accounts', 'acme'))?.['note']).not.toBe('unseen');
  });

  it('whose history line is missing still counts in the numbering, and hides no earlier line', async () => {
    const day = '2026-01-02';
    const lineOf = (number: number) => ({
      id: `console-history#${day}#${number}`,
      number,
      at: `${day}T00:00:0${number % 10}Z`,
      by: 'olga@example.com',
      role: 'operator',
      title: `Title ${number}.`,
      effect: [],
    });
    await put(rig.client, 'runtime', [
      { id: `console-count#${day}`, lines: 53 },
      lineOf(53),
      lineOf(51),
      lineOf(1),
    ]);
    const vera = await loggedIn('vera');
    const page = await vera.page(`history?day=${day}`);
    expect(page).toMatch(/Title 53\.[^]*missing[^]*Never started, or its entry was deleted[^]*Title 51\./);
    const [, older = ''] = /href="(history\?[^"]*before=4)"/.exec(page) ?? [];
    expect(await vera.page(older.replaceAll('&amp;', '&'))).toContain('Title 1.');
    const endpoint = { AWS_ENDPOINT_URL_DYNAMODB: rig.emulator.endpoint };
    const { output } = await runOps(['console', '--history', day], endpoint);
    expect(output.match(/^\d+: missing entry/gm)).toHaveLength(50);
    expect(output).toMatch(/Title 53\.[^]*\n52: missing entry[^]*Title 51\.[^]*Title 1\./);
  });

  it('is carried out once, however often it is confirmed at the same time', async () => {
    const olga = await loggedIn('olga');
    const { at, fields } = await olga.proposed('customers/acme/keys/new', { name: 'only one' });
    const replies = await Promise.all(Array.from({ length: 10 }, () => olga.post(at, fields)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    const made = (await rig.ports.tables.scan('keys')).filter(({ name }) => name === 'only one');
    expect(made).toHaveLength(1);
  });

  it('shows a new key in its answer, and stores it nowhere', async () => {
    const olga = await loggedIn('olga');
    const made = await olga.carryOut('customers/acme/keys/new', { name: 'k' });
    const [, key = 'none'] = /data-secret>(sk-[\w-]+)</.exec(await made.text()) ?? [];
    expect(key).toMatch(/^sk-/);
    for (const table of ['runtime', 'keys', 'accounts'] as const)
      expect(JSON.stringify(await rig.ports.tables.scan(table))).not.toContain(key);
  });
});

describe('the rights of the function', () => {
  it('allow all actions of the tests above', () => {
    const denied = enforcer.denied.map(({ action, resource }) => `${action} ${resource.split('/').at(-1)}`);
    expect(denied).toEqual([]);
  });

  it('deny deleting history lines, writing balances and reading stored responses', () => {
    const { statements } = rolePolicyOf(synthesize({ console: consoleOption }).template, 'ConsoleRole');
    const isAllowed = (action: string, table: string, keys?: string[]) => {
      const resource = arnOf('dynamodb', `table/relay-${table}`);
      const given: Record<string, string[]> = keys ? { 'dynamodb:LeadingKeys': keys } : {};
      return evaluate(statements, { action: `dynamodb:${action}`, resource, keys: given }).allowed;
    };
    const line = ['console-history#2026-11-27#1'];
    expect(isAllowed('PutItem', 'runtime', line)).toBe(true);
    for (const action of ['DeleteItem', 'UpdateItem', 'BatchWriteItem'])
      expect([action, isAllowed(action, 'runtime', line)]).toEqual([action, false]);
    for (const table of ['quotas', 'ledger', 'daily']) expect(isAllowed('PutItem', table)).toBe(false);
    for (const action of ['GetItem', 'Query', 'BatchGetItem', 'Scan'])
      expect(isAllowed(action, 'responses')).toBe(false);
    expect(isAllowed('BatchGetItem', 'runtime', ['turn#x'])).toBe(false);
  });
});
