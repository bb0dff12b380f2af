/**
 * The operators' console as a function of a request and an identity: no process, no listening, so that it can stand behind
 * any login. It reads and writes through the opened ports alone, and what it writes was shown and confirmed before.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Hono, type Context } from 'hono';
import { Failure } from '../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { sharedStyle } from '../../../shared/relay/page/page-kit.ts';
import { masked } from '../markup.ts';
import { formOf, guardHeaders, isRefusal, refusalOf } from './guard.ts';
import { consoleStyle } from './layout/console-style.ts';
import { frame, type Page } from './layout/frame.ts';
import { pages } from './pages/all-pages.ts';
import { confirmPage, failurePage, faultPage, missingPage, notePage, resultPage } from './pages/outcome.ts';
import { LiveStreams } from './visit/live.ts';
import {
  Proposals,
  type ConsoleOptions,
  type Counted,
  type FormRoute,
  type Identity,
  type Visit,
} from './visit/visit.ts';

export interface ConsoleParts {
  ports: OperatorPorts;
  options: ConsoleOptions;
  /** Is given what no page expected, with its stack. Pages show none of it. */
  onFault: (error: unknown, path: string) => void;
}

export type ConsoleHandle = (request: Request, identity: Identity) => Promise<Response>;

type Inner = ConsoleParts & { counted: Counted };
type Call = Context<{ Bindings: { identity: Identity }; Variables: { fields: Record<string, string> } }>;
type Answer = (call: Call, make: (visit: Visit) => Page | Promise<Page>) => Promise<Response>;

export function consoleHandle(given: ConsoleParts): ConsoleHandle {
  const { options, onFault } = given;
  const parts = { ...given, counted: countedIn(given.ports) };
  const statics = readStaticFiles();
  const app = new Hono<{ Bindings: { identity: Identity }; Variables: { fields: Record<string, string> } }>();
  const answer = answering(parts, statics);
  const act = actions(parts, answer);
  const streams = new LiveStreams(parts.ports.clock, onFault);

  app.use(guarded(options, answer));
  for (const [address, { type, body }] of statics.files)
    app.get(`/${address}`, (call) =>
      call.body(body, 200, { 'content-type': type, 'cache-control': forever }),
    );
  for (const addPages of pages)
    addPages({
      page: (at, view) => void app.get(at, (call) => answer(call, view)),
      slowPage: (at, read, view) =>
        void app.get(at, async (call) => {
          const [found] = await Promise.allSettled([read(visitIn(call, parts))]);
          return answer(call, (visit) => {
            if (found.status === 'rejected') throw found.reason;
            return view(visit, found.value);
          });
        }),
      live: (at, watch) =>
        void app.get(at, (call) => {
          const visit = visitIn(call, parts);
          const sinceMs = Number(call.req.header('last-event-id') ?? visit.query('after')) || visit.nowMs;
          return streams.open(() => watch(visit, sinceMs), visit.path);
        }),
      // What breaks off breaks the connection, so that no browser takes a part for the whole.
      file: (at, name, lines) =>
        void app.post(at, (call) =>
          call.body(
            ReadableStream.from(lines(visitIn(call, parts))).pipeThrough(new TextEncoderStream()),
            200,
            {
              'content-type': 'application/jsonl',
              'content-disposition': `attachment; filename="${name}"`,
            },
          ),
        ),
      form(at, route) {
        app.get(at, (call) => act.form(call, route));
        app.post(at, (call) => act.propose(call, route));
      },
    });
  app.get('/confirm/:id', (call) => act.confirm(call, call.req.param('id')));
  app.post('/confirm/:id', (call) => act.start(call, call.req.param('id')));
  app.get('/done/:id', (call) => act.done(call, call.req.param('id')));
  app.notFound((call) => answer(call, missingPage));
  app.onError((error, call) => {
    onFault(error, call.req.path);
    return answer(call, faultPage);
  });

  return async (request, identity) => {
    const response = await app.fetch(request, { identity });
    for (const [name, value] of Object.entries(guardHeaders))
      if (name !== 'cache-control' || !response.headers.has(name)) response.headers.set(name, value);
    return response;
  };
}

/** Lets through what may reach a page, with the form that was sent. */
const guarded =
  (options: ConsoleOptions, answer: Answer) =>
  async (call: Call, next: () => Promise<void>): Promise<Response | undefined> => {
    const refusal = refusalOf(call.req.raw, options);
    if (refusal) return answer(call, () => notePage(refusal.status, refusal.why));
    if (call.req.method === 'POST') {
      const form = await formOf(call.req.raw, call.env.identity);
      if (isRefusal(form)) return answer(call, () => notePage(form.status, form.why));
      call.set('fields', form);
    }
    await next();
    return undefined;
  };

function visitIn(call: Call, { ports, options, counted }: Inner): Visit {
  const fields = call.get('fields') ?? {};
  return {
    ports,
    options,
    counted,
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

/** The ports count for all, so what is counted is read one after the other. */
function countedIn(ports: OperatorPorts): Counted {
  let turn: Promise<unknown> = Promise.resolve();
  return async (read) => {
    const work = turn.then(async () => {
      const startMs = ports.clock.now();
      const before = ports.traffic();
      const found = await read();
      const { requests, bytes } = ports.traffic();
      const elapsedMs = ports.clock.now() - startMs;
      const cost = { requests: requests - before.requests, bytes: bytes - before.bytes, elapsedMs };
      return { found, cost };
    });
    turn = work.catch(() => undefined);
    return work;
  };
}

/** Makes pages, and counts what each of them read. Never shows more of an error than its message. */
function answering(parts: Inner, { style, scripts }: StaticFiles): Answer {
  const { counted, options, onFault } = parts;
  return async (call, make) => {
    const visit = visitIn(call, parts);
    const made = async (): Promise<Page> => make(visitIn(call, parts));
    const { found: page, cost } = await counted(() =>
      made().catch((error: unknown) => {
        if (error instanceof Failure) return failurePage(error, visit.path);
        onFault(error, visit.path);
        return faultPage();
      }),
    );
    const at = visit.path + new URL(call.req.url).search;
    const framing = { ...options, name: visit.identity.name, path: at, style, scripts, cost };
    const text = withoutIndent(String(await frame(page, framing)));
    return call.html(masked(text, new Set([page.secret ?? ''])), (page.status ?? 200) as 200);
  };
}

/** A third of a long table is the indentation of its rows. */
const withoutIndent = (text: string): string =>
  text.replaceAll(/<(pre|textarea)\b[^]*?<\/\1>|\s*\n\s*/g, (found) =>
    found.startsWith('<') ? found : '\n',
  );

/** How long the answer to a confirmation waits for the end of the work, before it says that it goes on. */
const waitMs = 1500;
const onlyReads = notePage(403, 'This console only reads.');
const gone = notePage(
  404,
  'This step is over: it was carried out, or half an hour has passed, or the console was started again. Nothing is done twice. Look at the list, then begin again if it is still needed.',
);

/** Takes a form to its proposal, a proposal to its confirmation, and that to its result. Writes nothing unasked. */
function actions(parts: Inner, answer: Answer) {
  const { ports, options, onFault } = parts;
  const { clock, random } = ports;
  const proposals = new Proposals({ newId: () => random.hex(16), now: () => clock.now() });
  const goTo = (call: Call, at: string): Response => call.redirect(options.base + at, 303);
  const isClosed = ({ reads = false }: { reads?: boolean }): boolean => options.readOnly && !reads;

  const start = async (call: Call, id: string): Promise<Response> => {
    const kept = proposals.find(call.env.identity, id);
    if (!kept) return answer(call, () => gone);
    const { refusal } = kept.proposal;
    if (isClosed(kept.proposal)) return answer(call, () => onlyReads);
    if (refusal !== undefined) return answer(call, () => notePage(409, refusal));
    proposals.start(kept);
    await Promise.race([kept.run?.done, clock.sleep(waitMs)]);
    return goTo(call, `done/${id}`);
  };

  return {
    start,
    /** The form; with what was typed, if it comes from the page that asks. */
    form(call: Call, route: FormRoute): Promise<Response> {
      if (isClosed(route)) return answer(call, () => onlyReads);
      const kept = proposals.find(call.env.identity, call.req.query('again') ?? '');
      return answer(call, (visit) =>
        route.page(visit, kept?.path === visit.path ? { fields: kept.typed } : undefined),
      );
    },
    async propose(call: Call, route: FormRoute): Promise<Response> {
      if (isClosed(route)) return answer(call, () => onlyReads);
      const visit = visitIn(call, parts);
      try {
        const proposal = await route.propose(visit);
        const id = proposals.add(visit, proposal);
        return proposal.reads ? await start(call, id) : goTo(call, `confirm/${id}`);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const { message: problem, exitCode } = error;
        // What is wrong with a form itself is a usage failure.
        const tried = { fields: visit.fields, problem, isOvertaken: exitCode !== 2 };
        return answer(call, async () => Object.assign(await route.page(visit, tried), { status: 422 }));
      }
    },
    async confirm(call: Call, id: string): Promise<Response> {
      const kept = proposals.find(call.env.identity, id);
      if (kept?.run) return goTo(call, `done/${id}`);
      return answer(call, (visit) => (kept ? confirmPage(visit, kept) : gone));
    },
    done(call: Call, id: string): Promise<Response> {
      const kept = proposals.find(call.env.identity, id);
      return answer(call, (visit) => {
        const run = kept?.run;
        if (!run) return gone;
        if (run.ended && 'error' in run.ended && !(run.ended.error instanceof Failure))
          onFault(run.ended.error, visit.path);
        return resultPage(visit, { kept, run, secret: proposals.takeSecret(kept) });
      });
    },
  };
}

/** The files that pages load, by names that change with their content. Only these exist: no path leads to a folder. */
interface StaticFiles {
  files: ReadonlyMap<string, { type: string; body: string }>;
  style: string;
  scripts: readonly string[];
}

const forever = 'private, max-age=31536000, immutable';

function readStaticFiles(): StaticFiles {
  const files = new Map<string, { type: string; body: string }>();
  const add = (name: string, type: string, body: string): string => {
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
    const [stem, ending] = name.split('.');
    const address = `static/${stem}.${hash}.${ending}`;
    files.set(address, { type: `text/${type}; charset=utf-8`, body });
    return address;
  };
  return {
    files,
    style: add('console.css', 'css', sharedStyle + consoleStyle),
    scripts: ['enhance.js', 'live.js'].map((name) =>
      add(name, 'javascript', readFileSync(new URL(name, import.meta.url), 'utf8')),
    ),
  };
}
