/**
 * The console for many people, below `/console/` of the relay's public address. A login at the issuer starts a session, and each
 * request gets the role that the deployment gives the person now. Must not answer any page without a session.
 *
 * Customers' pages have the same origin, so their scripts are treated as another site: pages are answered only to a browser that
 * opens them, never to a script that fetches them, and windows cannot reach each other.
 */
import * as z from 'zod/mini';
import { parseYuan } from '../../../../shared/billing/money.ts';
import { contactAttributes } from '../../../../shared/operate/customers/close-account.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { Failure, formatMoney } from '../../../../shared/operate/plan.ts';
import { parseJson } from '../../../../shared/wire/json.ts';
import type { RelayConsole } from '../../../stack/constructs/hosted-console.ts';
import { formatChanges, type FieldChange } from '../../fields/describe-changes.ts';
import { topOf } from '../../fields/row-field.ts';
import { html, maskKeys } from '../../markup.ts';
import { createConsole, type ConsoleHost } from '../console.ts';
import { readCookie, guardHeaders } from '../guard.ts';
import { may, type Identity } from '../visit/visit.ts';
import { roleOf, type Login } from './login.ts';

export interface HostedDeps {
  ports: OperatorPorts;
  /** Returns ports whose writes name the person. */
  portsOf: (name: string) => OperatorPorts;
  login: Login;
  options: Pick<RelayConsole, 'roles' | 'supportRefundYuanADay'>;
  where: string;
  /** A local stack has no certificate, so its cookies are not bound to TLS. */
  isLocal: boolean;
  onFault: (error: unknown, path: string) => void;
  onRefused: (error: unknown) => void;
}

export const consoleBase = '/console/';
const loginMs = 10 * 60_000;
/** Browsers drop a cookie over 4,096 bytes; a character has up to three, and base64 adds a third. */
const toLengthMax = 900;
/** A function keeps running after its browser left, so a watch that nobody sees ends then. */
const watchMs = 5 * 60_000;

/** @returns what answers a request whose address has the public host */
export function createHostedConsole(parts: HostedDeps): (request: Request) => Promise<Response> {
  const { ports, login, options, where, isLocal, onFault, onRefused } = parts;
  const { clock, consoles } = ports;
  const cookies = cookiesOf(isLocal);
  const hosting = hostingOf(parts, cookies);
  const handle = createConsole({ ports, options: { base: consoleBase, where }, onFault, hosting });

  const begin = async ({ origin, searchParams }: URL): Promise<Response> => {
    const started = await login.begin(`${origin}${consoleBase}callback`).catch(onRefused);
    if (!started) return renderNote(503, 'The login provider is not responding. Try again in a minute.');
    const { address, loginState } = started;
    const to = searchParams.get('to') ?? '';
    const kept = { ...loginState, to: to.length > toLengthMax ? '' : to, untilMs: clock.now() + loginMs };
    const value = Buffer.from(JSON.stringify(kept)).toString('base64url');
    return redirect(address.href, [cookies.set('login', value, loginMs / 1000)]);
  };

  const end = async (request: Request, url: URL): Promise<Response> => {
    const endLogin = (status: number, words: string) => renderNote(status, words, [cookies.clear('login')]);
    const startedLogin = readLogin(cookies.get(request, 'login'));
    if (!startedLogin || startedLogin.untilMs < clock.now())
      return endLogin(400, 'This login has expired, or was started in another browser. Log in again.');
    const person = await login.end(url, startedLogin).catch(onRefused);
    // A second check that a code is used once, in case the issuer allows more.
    if (!person || !(await consoles.isFirst(startedLogin.state)))
      return endLogin(403, 'The login failed. Try again.');
    if (roleOf(person, options.roles) === undefined)
      return endLogin(403, `${person.name} has no role in this console. Ask an operator for access.`);
    const before = cookies.get(request, 'session');
    if (before) await consoles.endSession(before);
    const session = await consoles.beginSession(person);
    return redirect(resolveBelow(url.origin, startedLogin.to), [
      cookies.set('session', session),
      cookies.clear('login'),
    ]);
  };

  return async (request) => {
    const url = new URL(request.url);
    const path = url.pathname.slice(consoleBase.length);
    const isGet = request.method === 'GET';
    if (!url.pathname.startsWith(consoleBase))
      return isGet ? redirect(consoleBase) : renderNote(404, 'Not found.');
    if (isGet && path === 'login') return begin(url);
    if (isGet && path === 'callback') return end(request, url);
    const isAsset = isGet && (path.startsWith('static/') || /(^|\/)live$/.test(path));
    const isOpened = request.headers.get('sec-fetch-dest') === 'document';
    if (!isAsset && !isOpened) return refuseScript();
    const session = await consoles.session(cookies.get(request, 'session') ?? '');
    const role = session && roleOf(session, options.roles);
    if (!role) {
      const to = new URLSearchParams({ to: path + url.search });
      return isGet && isOpened
        ? redirect(`${consoleBase}login?${to.toString()}`)
        : renderNote(401, 'Your session has expired. Nothing was saved.');
    }
    const { name, formToken } = session;
    url.pathname = `/${path}`;
    const answer = await handle(new Request(url, request), { name, formToken, role });
    // Every page holds the session's token, even a 404.
    const isPage = answer.headers.get('content-type')?.startsWith('text/html') ?? true;
    return isOpened || !isPage ? answer : refuseScript();
  };
}

function hostingOf(
  { ports: { consoles }, portsOf, options }: HostedDeps,
  cookies: ReturnType<typeof cookiesOf>,
): ConsoleHost {
  const { supportRefundYuanADay: given = 0 } = options;
  const limit = parseYuan(given);
  return {
    watchMs,
    portsOf: ({ name }) => portsOf(name),
    forms: consoles,
    countWatch: ({ name }) => consoles.countWatch(name),
    async begin({ name: by, role }, { title, effect, changes = [] }) {
      const lines = [...effect, ...formatChanges(changes.map(hideContact))];
      const end = await consoles.append({ by, role, title, effect: maskLines(lines) });
      return (ended) => end(maskLines('outcome' in ended ? ended.outcome.lines : [reasonOf(ended.error)]));
    },
    async refusedRefund(identity: Identity, amount) {
      if (may(identity, 'operator')) return undefined;
      if (limit === undefined)
        return `The deployment option console.supportRefundYuanADay is invalid (${given}): use yuan with at most 9 decimals. Until it is fixed, support can’t refund. Nothing was saved. Ask an operator.`;
      if (await consoles.countRefund(identity.name, amount, limit)) return undefined;
      return `Each person in support can refund at most ${formatMoney(limit)} a day, and this is more than you have left today. Nothing was saved. Ask an operator.`;
    },
    async leave(request) {
      const session = cookies.get(request, 'session');
      if (session) await consoles.endSession(session);
      return renderNote(
        200,
        'You are logged out of the console. You may still be logged in at the login provider.',
        [cookies.clear('session')],
      );
    },
  };
}

/** The history can't be erased, so contact data must not enter it. */
const hideContact = (change: FieldChange): FieldChange =>
  contactAttributes.has(topOf(change.name)) ? { ...change, before: '', after: 'changed' } : change;

const maskLines = (texts: readonly string[]): string[] => texts.map((text) => maskKeys(text));

const reasonOf = (error: unknown): string =>
  error instanceof Failure ? `failed: ${error.message}` : 'console error: see its log';

/** The prefix `__Host-` binds a cookie to this host and to TLS. */
function cookiesOf(isLocal: boolean) {
  const names = { session: 'relay-console', login: 'relay-console-login' };
  const nameOf = (which: keyof typeof names): string => (isLocal ? '' : '__Host-') + names[which];
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${isLocal ? '' : '; Secure'}`;
  return {
    /** Lax, because the issuer's site leads back here. */
    set: (which: keyof typeof names, value: string, seconds?: number): string =>
      `${nameOf(which)}=${value}${attributes}${seconds === undefined ? '' : `; Max-Age=${seconds}`}`,
    clear: (which: keyof typeof names): string => `${nameOf(which)}=${attributes}; Max-Age=0`,
    get: (request: Request, which: keyof typeof names) => readCookie(request, nameOf(which)),
  };
}

const KeptLogin = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  to: z.string(),
  untilMs: z.number(),
});

/** The browser's user can forge this cookie, so it only binds a login to the browser and grants nothing. */
const readLogin = (cookie = '') =>
  z.safeParse(KeptLogin, parseJson(Buffer.from(cookie, 'base64url').toString())).data;

/** Returns an address below the console; anything else becomes the console's start page. */
function resolveBelow(origin: string, to: string): string {
  const target = URL.parse(consoleBase + to, origin);
  const isOwn = target?.href.startsWith(`${origin}${consoleBase}`) && !/^(login|callback)\b/.test(to);
  return target && isOwn ? target.pathname + target.search : consoleBase;
}

function buildAnswer(
  status: number,
  body: string | null,
  more: Record<string, string>,
  cookies: readonly string[],
) {
  const headers = new Headers({ ...guardHeaders, ...more });
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return new Response(body, { status, headers });
}

const redirect = (location: string, cookies: readonly string[] = []): Response =>
  buildAnswer(303, null, { location }, cookies);

const refuseScript = (): Promise<Response> => renderNote(403, 'Open this page in a browser.');

const renderNote = async (
  status: number,
  words: string,
  cookies: readonly string[] = [],
): Promise<Response> => {
  const page = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>Relay console</title>
      </head>
      <body>
        <main>
          <h1>Relay console</h1>
          <p>${words}</p>
          <p><a href="${consoleBase}">Open the console</a></p>
        </main>
      </body>
    </html> `;
  return buildAnswer(status, String(page), { 'content-type': 'text/html; charset=utf-8' }, cookies);
};
