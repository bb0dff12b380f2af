/**
 * The operators' console as a function of a request and an identity: no process, no listening, so that it can stand behind
 * any login. It reads and writes through the opened ports alone, and what it writes was shown and confirmed before.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Hono, type Context } from 'hono';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { pages } from './pages/all-pages.ts';
import { faultPage, missingPage, notePage, confirmPage, resultPage, failurePage } from './pages/outcome.ts';
import {
  Proposals,
  type Routes,
  type ConsoleOptions,
  type Identity,
  type Visit,
  type FormRoute,
} from './visit/visit.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import type { Clock } from '../../../shared/relay/ports/host.ts';
import { type Page, frame } from './layout/frame.ts';
import { sharedStyle } from '../../../shared/relay/page/page-kit.ts';
import { consoleStyle } from './layout/console-style.ts';

interface ConsoleParts {
  ports: OperatorPorts;
  options: ConsoleOptions;
  /** Is given what no page expected, with its stack. Pages show none of it. */
  onFault: (error: unknown, path: string) => void;
}

export type ConsoleHandle = (request: Request, identity: Identity) => Promise<Response>;

/** Requests that are answered or wait for it; a script that asks for a thousand pages is refused most of them. */
const atOnceMax = 8;

export function consoleHandle({ ports, options, onFault }: ConsoleParts): ConsoleHandle {
  const { clock, random } = ports;
  const statics = readStaticFiles();
  const app = new Hono<Environment>();
  const visitOf = (call: Call): Visit => visitIn(call, { ports, options });
  const answer = answering({ ports, options, statics, visitOf, onFault });
  const note = (call: Call, status: number, words: string): Promise<Response> =>
    answer(call, async () => notePage(status, words));
  const proposals = new Proposals({ newId: () => random.hex(16), now: () => clock.now() });
  const act = actions({ proposals, clock, options, visitOf, answer, note, onFault });

  app.use(guarded(options, note));
  for (const [path, { type, body }] of statics.files)
    app.get(`/${path}`, (call) => call.body(body, 200, { 'content-type': type, 'cache-control': forever }));
  const routes: Routes = {
    page: (path, view) => void app.get(path, (call) => answer(call, (visit) => view(visit))),
    form(path, route) {
      app.get(path, (call) => act.form(call, route));
      app.post(path, (call) => act.propose(call, route));
    },
  };
  for (const addPages of pages) addPages(routes);
  app.get('/confirm/:id', (call) => act.confirm(call, call.req.param('id')));
  app.post('/confirm/:id', (call) => act.start(call, call.req.param('id')));
  app.get('/done/:id', (call) => act.done(call, call.req.param('id')));
  app.notFound((call) => answer(call, async () => missingPage()));
  app.onError((error, call) => {
    onFault(error, call.req.path);
    return answer(call, async () => faultPage());
  });

  return async (request, identity) => {
    const response = await app.fetch(request, { identity });
    for (const [name, value] of Object.entries(guardHeaders))
      if (name !== 'cache-control' || !response.headers.has(name)) response.headers.set(name, value);
    return response;
  };
}

/** Their names change with their content. */
const forever = 'private, max-age=31536000, immutable';

/** Lets through what may reach a page, so many at once, with the form that was sent. */
function guarded(
  options: ConsoleOptions,
  note: (call: Call, status: number, words: string) => Promise<Response>,
) {
  let running = 0;
  return async (call: Call, next: () => Promise<void>): Promise<Response | undefined> => {
    if (running >= atOnceMax) return call.text('The console is busy. Load the page again.', 503);
    running += 1;
    try {
      const refusal = refusalOf(call.req.raw, options);
      if (refusal) return await note(call, refusal.status, refusal.why);
      if (call.req.method === 'POST') {
        const form = await formOf(call.req.raw, call.env.identity);
        if (isRefusal(form)) return await note(call, form.status, form.why);
        call.set('fields', form);
      }
      await next();
      return undefined;
    } finally {
      running -= 1;
    }
  };
}

function visitIn(call: Call, { ports, options }: Pick<ConsoleParts, 'ports' | 'options'>): Visit {
  const fields = call.get('fields') ?? {};
  return {
    ports,
    options,
    identity: call.env.identity,
    nowMs: ports.clock.now(),
    // As it was sent: of Hono's decoded path a browser would make another one where a name has a backslash or a tab.
    path: new URL(call.req.url).pathname.slice(1),
    part: (name) => call.req.param(name) ?? '',
    query: (name) => call.req.query(name)?.trim() ?? '',
    field: (name) => fields[name] ?? '',
    fields,
  };
}

// Takes a form to its proposal, a proposal to its confirmation, and that to its result. Writes nothing unasked.

interface Environment {
  Bindings: { identity: Identity };
  Variables: { fields: Record<string, string> };
}
type Call = Context<Environment>;

interface ActionParts {
  proposals: Proposals;
  clock: Pick<Clock, 'sleep'>;
  options: ConsoleOptions;
  visitOf: (call: Call) => Visit;
  answer: (call: Call, make: (visit: Visit) => Promise<Page>) => Promise<Response>;
  note: (call: Call, status: number, words: string) => Promise<Response>;
  onFault: (error: unknown, path: string) => void;
}

/** How long the answer to a confirmation waits for the end of the work, before it says that it goes on. */
const waitMs = 1500;
const onlyReads = 'This console only reads.';
const goneWords =
  'This step is over: it was carried out, or half an hour has passed, or the console was started again. Nothing is done twice. Look at the list, then begin again if it is still needed.';

function actions({ proposals, clock, options, visitOf, answer, note, onFault }: ActionParts) {
  const goTo = (call: Call, path: string): Response => call.redirect(options.base + path, 303);

  const start = async (call: Call, id: string): Promise<Response> => {
    const kept = proposals.find(call.env.identity, id);
    if (!kept) return note(call, 404, goneWords);
    if (options.readOnly && !kept.proposal.reads) return note(call, 403, onlyReads);
    if (kept.proposal.refusal !== undefined) return note(call, 409, kept.proposal.refusal);
    if (!proposals.start(kept))
      return note(call, 503, 'Four other actions are running. Wait for one of them, then repeat.');
    await Promise.race([kept.run?.done, clock.sleep(waitMs)]);
    return goTo(call, `done/${id}`);
  };

  return {
    start,
    /** The form; with what was typed, if it comes from the page that asks. */
    form(call: Call, { page, reads = false }: FormRoute): Promise<Response> {
      if (options.readOnly && !reads) return note(call, 403, onlyReads);
      const kept = proposals.find(call.env.identity, call.req.query('again') ?? '');
      const isOwn = kept?.path === visitOf(call).path;
      return answer(call, (visit) => page(visit, isOwn ? { fields: kept.typed } : undefined));
    },
    async propose(call: Call, { page, propose, reads = false }: FormRoute): Promise<Response> {
      if (options.readOnly && !reads) return note(call, 403, onlyReads);
      const visit = visitOf(call);
      try {
        const proposal = await propose(visit);
        const id = proposals.add(visit, proposal);
        return proposal.reads ? await start(call, id) : goTo(call, `confirm/${id}`);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const { message: problem, exitCode } = error;
        // What is wrong with a form itself is a usage failure.
        const tried = { fields: visit.fields, problem, isOvertaken: exitCode !== 2 };
        return answer(call, async () => Object.assign(await page(visit, tried), { status: 422 }));
      }
    },
    confirm(call: Call, id: string): Promise<Response> | Response {
      const kept = proposals.find(call.env.identity, id);
      if (!kept) return note(call, 404, goneWords);
      return kept.run ? goTo(call, `done/${id}`) : answer(call, async (visit) => confirmPage(visit, kept));
    },
    done(call: Call, id: string): Promise<Response> {
      const kept = proposals.find(call.env.identity, id);
      const run = kept?.run;
      if (!kept || !run) return note(call, 404, goneWords);
      return answer(call, async (visit) => {
        if (run.ended && 'error' in run.ended && !(run.ended.error instanceof Failure))
          onFault(run.ended.error, visit.path);
        return resultPage(visit, { kept, run, secret: proposals.takeSecret(kept) });
      });
    },
  };
}

// Makes pages one after the other, and counts what each of them read. Never shows more of an error than its message.

interface AnswerParts {
  ports: OperatorPorts;
  options: ConsoleOptions;
  statics: StaticFiles;
  visitOf: (call: Call) => Visit;
  onFault: (error: unknown, path: string) => void;
}

function answering({ ports, options, statics, visitOf, onFault }: AnswerParts) {
  const made = async (make: (visit: Visit) => Promise<Page>, visit: Visit): Promise<Page> => {
    try {
      return await make(visit);
    } catch (error) {
      if (error instanceof Failure) return failurePage(error, visit.path);
      onFault(error, visit.path);
      return faultPage();
    }
  };
  let turn: Promise<unknown> = Promise.resolve();
  return async (call: Call, make: (visit: Visit) => Promise<Page>): Promise<Response> => {
    // The ports count for all; one page at a time is counted alone.
    const work = turn.then(async () => {
      const startMs = ports.clock.now();
      const before = ports.traffic();
      const visit = visitOf(call);
      const page = await made(make, visit);
      const { requests, bytes } = ports.traffic();
      const elapsedMs = ports.clock.now() - startMs;
      const cost = { requests: requests - before.requests, bytes: bytes - before.bytes, elapsedMs };
      const { base, where, readOnly } = options;
      const path = visit.path + new URL(call.req.url).search;
      const framing = { base, where, readOnly, name: visit.identity.name, path };
      const text = String(await frame(page, { ...framing, ...statics, cost }));
      return call.html(masked(text, page.secret), (page.status ?? 200) as 200);
    });
    turn = work.catch(() => undefined);
    return work;
  };
}

/** A client's key, or one of many vendors': one may stand in a wrong attribute, a note or an error. */
const keyPattern = /\bsk-[\w-]{20,}/g;

const masked = (text: string, revealed: string | undefined): string =>
  text.replaceAll(keyPattern, (key) => (key === revealed ? key : `${key.slice(0, 7)}...${key.slice(-4)}`));

/** Headers of every answer of the console: what a browser may do with it, which is little. */

/**
 * Every answer has these. Nothing is loaded but from the console itself, nothing frames it, nothing is stored: a page
 * may show a new key.
 */
export const guardHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With no-referrer, browsers send `Origin: null` with the console's own forms.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'cache-control': 'no-store',
};

// The files that pages load, by names that change with their content. Only these exist: no path leads to a folder.

interface StaticFile {
  type: string;
  body: string;
}

interface StaticFiles {
  /** By the path below the base. */
  files: ReadonlyMap<string, StaticFile>;
  style: string;
  scripts: readonly string[];
}

function readStaticFiles(): StaticFiles {
  const plots = path.join(path.dirname(createRequire(import.meta.url).resolve('uplot/package.json')), 'dist');
  const files = new Map<string, StaticFile>();
  const add = (name: string, type: string, body: string): string => {
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
    const [stem, ending] = name.split('.');
    const address = `static/${stem}.${hash}.${ending}`;
    files.set(address, { type, body });
    return address;
  };
  const style = add(
    'console.css',
    'text/css; charset=utf-8',
    [sharedStyle, readFileSync(path.join(plots, 'uPlot.min.css'), 'utf8'), consoleStyle].join('\n'),
  );
  const script = 'text/javascript; charset=utf-8';
  const scripts = [
    add('uplot.js', script, knownLanguage + readFileSync(path.join(plots, 'uPlot.iife.min.js'), 'utf8')),
    add('enhance.js', script, readFileSync(new URL('enhance.js', import.meta.url), 'utf8')),
  ];
  return { files, style, scripts };
}

/** uPlot asks for number formats of the browser's language when it is loaded, and stops where that is none: `en-US@posix`. */
const knownLanguage = `
try { new Intl.NumberFormat(navigator.language); }
catch { Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true }); }
`;

// Decides whether a request may reach a page at all: by Host (DNS rebinding), by Origin
// (other sites), by size. Never looks at what a page does.

/** A form of this console is far smaller: 300 models of a billing rule are some 10 KB. */
export const formBytesMax = 256 * 1024;
const addressLengthMax = 4096;

interface Refusal {
  status: 400 | 403 | 405 | 413 | 414 | 421;
  why: string;
}

/** Everything that can be said without the body. Undefined: it may go on. */
function refusalOf(request: Request, { hosts }: ConsoleOptions): Refusal | undefined {
  const { headers, method, url } = request;
  const host = headers.get('host') ?? new URL(url).host;
  if (!hosts.includes(host))
    return { status: 421, why: 'This address is not the console’s own. Open the address that it printed.' };
  if (url.length > addressLengthMax) return { status: 414, why: 'The address is too long.' };
  const site = headers.get('sec-fetch-site');
  if (method === 'GET') return undefined;
  // HEAD would take a new key, which is shown once, and show it to nobody.
  if (method !== 'POST') return { status: 405, why: 'Pages are read with GET and written with POST.' };
  // A browser sends Origin with every form; a request without one is not from a page of this console.
  const origin = headers.get('origin');
  if (origin === null || !hosts.some((each) => origin === `http://${each}` || origin === `https://${each}`))
    return { status: 403, why: 'This form was sent by another site.' };
  if (site !== null && site !== 'same-origin')
    return { status: 403, why: 'This form was sent by another site.' };
  if (headers.get('content-type')?.split(';')[0] !== 'application/x-www-form-urlencoded')
    return { status: 400, why: 'This is not a form of the console.' };
  if (Number(headers.get('content-length') ?? 0) > formBytesMax) return tooLarge;
  return undefined;
}

const tooLarge: Refusal = { status: 413, why: 'The form is too large.' };

// Reads a form that this session made, and no other: by its token, its size and the number of its fields.

const fieldsMax = 200;

/** The fields of a form that this session made. The last of several with one name counts. */
async function formOf(request: Request, { formToken }: Identity): Promise<Record<string, string> | Refusal> {
  const text = await boundedText(request);
  if (text === undefined) return tooLarge;
  const fields = [...new URLSearchParams(text)];
  if (fields.length > fieldsMax) return tooLarge;
  const form = Object.fromEntries(fields.map(([name, value]) => [name, value.trim()]));
  if (!isSame(form['form_token'] ?? '', formToken))
    return {
      status: 403,
      why: 'This form is of another session. Nothing was written: load the page again, then repeat.',
    };
  return form;
}

const isRefusal = (form: Record<string, string> | Refusal): form is Refusal =>
  typeof form['status'] === 'number';

async function boundedText(request: Request): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > formBytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

// Compares secrets.

/** In a time that says nothing about where two texts differ. */
export function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}
