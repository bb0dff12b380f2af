/**
 * The operators' console as a function of a request and an identity, so that it works behind any login. It reads and writes only
 * through the opened ports, and never writes anything that was not shown and confirmed first.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Hono, type Context } from 'hono';
import { Failure } from '../../../shared/operate/plan.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { sharedStyle } from '../../../shared/relay/page/page-kit.ts';
import { html, maskKeys } from '../markup.ts';
import type { NanoYuan } from '../../../shared/billing/money.ts';
import { admitForm, readQuery, guardHeaders } from './guard.ts';
import { consoleStyle } from './layout/console-style.ts';
import { assignErrors, mentionsField } from './layout/form.ts';
import { renderFrame, renderOverList, type Page } from './layout/frame.ts';
import { pages } from './pages/all-pages.ts';
import {
  basisOf,
  renderConfirmation,
  renderDone,
  renderFailure,
  renderFault,
  renderMissing,
  renderNote,
  renderResult,
  freezeProposal,
} from './pages/outcome.ts';
import { createLiveStreams, refuseWatch } from './visit/live.ts';
import {
  type AnswerRoute,
  may,
  createMemoryForms,
  chooseRequiredRole,
  explainRefusal,
  addListToAddress,
  readList,
  type ConsoleOptions,
  type CountReads,
  type ActionEnd,
  type FormRoute,
  type Identity,
  type KeptResult,
  type PendingForm,
  type FormStore,
  type Proposal,
  type Visit,
} from './visit/visit.ts';

export interface ConsoleDeps {
  ports: OperatorPorts;
  options: ConsoleOptions;
  /** Receives unexpected errors with their stack. Pages never show them. */
  onFault: (error: unknown, path: string) => void;
  hosting?: ConsoleHost;
}

/** Needed when many people use the console at once and many processes answer it. */
export interface ConsoleHost {
  forms: FormStore;
  /** Rows written through these ports name the person. */
  portsOf(identity: Identity): OperatorPorts;
  /** Records a write before it is made; the result records its end. A write that cannot be recorded is not made. */
  begin(identity: Identity, proposal: Proposal): Promise<(ended: ActionEnd) => Promise<void>>;
  /** Counts a refund against the daily limit before it is written. Returns the reason when it exceeds the limit. */
  refusedRefund(identity: Identity, amount: NanoYuan): Promise<string | undefined>;
  /** Returns false when too many pages are live. */
  countWatch(identity: Identity): Promise<boolean>;
  leave(request: Request): Promise<Response>;
  watchMs: number;
}

export type ConsoleHandle = (request: Request, identity: Identity) => Promise<Response>;

type CountingDeps = ConsoleDeps & { counted: CountReads; forms: FormStore };

/**
 * `confirming` is a form of this session that was shown and is confirmed now. `take` receives a page without its frame, so that another
 * page can be shown over it.
 */
interface ConsoleContext {
  Bindings: { identity: Identity; confirming?: PendingForm; take?: (page: Page) => void };
  Variables: { fields: Record<string, string> };
}
type PageCall = Context<ConsoleContext>;
type AnswerPage = (call: PageCall, make: (visit: Visit) => Page | Promise<Page>) => Promise<Response>;

export function createConsole(consoleDeps: ConsoleDeps): ConsoleHandle {
  const { options, onFault } = consoleDeps;
  const forms = consoleDeps.hosting?.forms ?? createMemoryForms(consoleDeps.ports);
  const deps = { ...consoleDeps, forms, counted: countReads(consoleDeps.ports) };
  const statics = readStaticFiles();
  const app = new Hono<ConsoleContext>();
  const answer = answerWithPages(deps, statics, async (call, path) => {
    const request = new Request(new URL(`/${path}`, call.req.url), { headers: call.req.raw.headers });
    let page = renderMissing();
    const take = (made: Page): void => void (page = made);
    await app.fetch(request, { identity: call.env.identity, take });
    return page;
  });
  const act = routeActions(deps, answer);
  const openStream = createLiveStreams(deps.ports.clock, onFault, deps.hosting?.watchMs);

  app.use(guardRequests(options, answer));
  for (const { address, type, body } of [statics.style, ...statics.scripts])
    app.get(`/${address}`, (call) =>
      call.body(body, 200, { 'content-type': type, 'cache-control': forever }),
    );
  for (const addPages of pages)
    addPages({
      page: (at, view) => void app.get(at, (call) => answer(call, view)),
      slowPage: (at, read, view) =>
        void app.get(at, async (call) => {
          const found = read(visitFor(call, deps));
          await found.catch(() => undefined);
          return answer(call, async (visit) => view(visit, await found));
        }),
      live: (at, watch) =>
        void app.get(at, async (call) => {
          const visit = visitFor(call, deps);
          const refused = await refuseWatch(visit, hosting && ((identity) => hosting.countWatch(identity)));
          const sinceMs = Number(call.req.header('last-event-id') ?? visit.query('after')) || visit.nowMs;
          return refused ?? openStream(() => watch(visit, sinceMs), visit.path);
        }),
      // An error breaks the connection, so that no browser takes half a file for all of it.
      file: (at, { nameOf, type, isExport, lines }) =>
        void app.post(at, async (call) => {
          const visit = visitFor(call, deps);
          if (isExport && !visit.options.exports) return answer(call, renderRefusal);
          const name = nameOf(visit).replaceAll(/[^\p{L}\p{N}.@_-]/gu, '_');
          // Read the first piece before replying: if the request is invalid, the reply is a page with the problem, not a file.
          const pieces = lines(visit)[Symbol.asyncIterator]();
          const first = await pieces.next().catch((error: unknown) => error);
          if (first instanceof Error) return answer(call, () => Promise.reject(first));
          return call.body(
            ReadableStream.from(resume(first as IteratorResult<string>, pieces)).pipeThrough(
              new TextEncoderStream(),
            ),
            200,
            {
              'content-type': `${type}; charset=utf-8`,
              // Older browsers read only the ASCII name.
              'content-disposition': `attachment; filename="${name.replaceAll(/[^ -~]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name)}`,
            },
          );
        }),
      form(at, route) {
        const guardForm = (work: 'form' | 'propose') => (call: PageCall) =>
          may(call.env.identity, chooseRequiredRole(route))
            ? act[work](call, route)
            : answer(call, renderRefusal);
        app.get(at, guardForm('form'));
        app.post(at, guardForm('propose'));
      },
    });
  app.get('/confirm/:id', (call) => act.confirm(call, call.req.param('id')));
  app.post('/confirm/:id', async (call) => {
    const confirming = await act.load(call, call.req.param('id'));
    if (!confirming) return act.expire(call);
    const form = new Request(new URL(`/${confirming.path}`, call.req.url), { method: 'POST' });
    return app.fetch(form, { ...call.env, confirming });
  });
  const { hosting } = deps;
  if (hosting) app.post('/logout', (call) => hosting.leave(call.req.raw));
  app.notFound((call) => answer(call, renderMissing));
  app.onError((error, call) => {
    onFault(error, call.req.path);
    return answer(call, renderFault);
  });

  return async (request, identity) => {
    const response = await app.fetch(request, { identity });
    for (const [name, value] of Object.entries(guardHeaders))
      if (name !== 'cache-control' || !response.headers.has(name)) response.headers.set(name, value);
    return response;
  };
}

async function* resume(first: IteratorResult<string>, pieces: AsyncIterator<string>): AsyncGenerator<string> {
  for (let piece = first; !piece.done; piece = await pieces.next()) yield piece.value;
}

/** Admits a request to the pages and keeps the form that it sent. */
const guardRequests =
  (options: ConsoleOptions, answer: AnswerPage) =>
  async (call: PageCall, next: () => Promise<void>): Promise<Response | undefined> => {
    const { confirming, identity } = call.env;
    // Keep a pasted key out of the browser's history and of links: redirect to a search for its hint, which finds it, too.
    const { pathname, search } = new URL(call.req.url);
    if (call.req.method === 'GET' && maskKeys(search) !== search)
      return call.redirect(options.base + pathname.slice(1) + maskKeys(search), 303);
    const form = confirming ?? (await admitForm(call.req.raw, options, identity));
    if ('why' in form) return answer(call, () => renderNote(form.status, form.why));
    call.set('fields', form.fields);
    await next();
    return undefined;
  };

function visitFor(call: PageCall, { ports, options, hosting, counted, forms }: CountingDeps): Visit {
  const fields = call.get('fields') ?? {};
  const { identity } = call.env;
  return {
    ports: hosting?.portsOf(identity) ?? ports,
    options: {
      ...options,
      readOnly: !may(identity, 'operator'),
      // A local console uses its operator's AWS credentials, which can read everything anyway.
      exports: !hosting || may(identity, 'operator'),
    },
    counted,
    identity,
    nowMs: ports.clock.now(),
    // As sent: from Hono's decoded path a browser would build another one if a name has a backslash or a tab.
    path: new URL(call.req.url).pathname.slice(1),
    parameter: (name) => call.req.param(name) ?? '',
    query: readQuery(call.req.raw),
    list: readList(fields['list'] ?? call.req.query('list')),
    field: (name) => fields[name] ?? '',
    fields,
    async readResult(id) {
      const text = id && (await forms.read(identity.formToken, id));
      return text ? (JSON.parse(text) as { result?: KeptResult }).result : undefined;
    },
  };
}

/** The ports count the traffic of all requests, so counted reads run one after another. */
function countReads(ports: OperatorPorts): CountReads {
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

/** Renders pages and counts what each of them read. Never shows more of an error than its message. */
function answerWithPages(
  deps: CountingDeps,
  statics: StaticFiles,
  loadPage: (call: PageCall, path: string) => Promise<Page>,
): AnswerPage {
  const { counted, options, onFault } = deps;
  const isHosted = deps.hosting !== undefined;
  const style = statics.style.address;
  const scripts = statics.scripts.map(({ address }) => address);
  return async (call, make) => {
    const visit = visitFor(call, deps);
    const makePage = async (): Promise<Page> => {
      const page = await make(visitFor(call, deps));
      const done = call.req.query('done') ?? '';
      const result = done && (await visit.readResult(done));
      return result ? { ...page, body: [renderDone(result, done, visit), page.body] } : page;
    };
    const makePageOrFault = (): Promise<Page> =>
      makePage().catch((error: unknown) => {
        if (error instanceof Failure) return renderFailure(error, visit.path);
        onFault(error, visit.path);
        return renderFault();
      });
    const { take, confirming } = call.env;
    if (take) {
      take(await makePageOrFault());
      return call.body(null);
    }
    const { found: page, cost } = await counted(async () => {
      const { list } = visit;
      const made = await makePageOrFault();
      return list === undefined ? made : renderOverList(await loadPage(call, list), made, list);
    });
    // A result keeps the address of its confirmation: with another, the skip link would leave the page and lose a key shown once.
    const at = confirming ? `confirm/${confirming.id}` : visit.path + new URL(call.req.url).search;
    const framing = { ...options, identity: visit.identity, isHosted, path: at, style, scripts, cost };
    const text = dropIndent(String(await renderFrame(page, framing)));
    return call.html(maskKeys(text, new Set(page.secrets)), (page.status ?? 200) as 200);
  };
}

/** A third of a long table is the indentation of its rows. */
const dropIndent = (text: string): string =>
  text.replaceAll(/<(pre|textarea)\b[^]*?<\/\1>|\s*\n\s*/g, (found) =>
    found.startsWith('<') ? found : '\n',
  );

const renderRefusal = ({ identity }: Visit): Page => renderNote(403, explainRefusal(identity));
const expiredStep = renderNote(
  404,
  'This step has expired or was already completed. A step is valid for 30 minutes, until the console restarts, and nothing is done twice. Check the list, then start over if needed.',
);
const renderOvertaken = (again: string): Page => ({
  ...renderNote(
    409,
    'Something changed in the meantime, so this would no longer do what was shown. Nothing was saved.',
  ),
  actions: html`<a class="button" href="${again}">Review again</a>`,
});

/**
 * Leads a form to a proposal, its confirmation and its result. No process needs to remember a proposal: it is computed again from
 * the same fields, as of the same time, and carried out only if it equals what was shown.
 */
function routeActions(deps: CountingDeps, answer: AnswerPage) {
  const { options, onFault, hosting, forms } = deps;
  const loadForm = async ({ env }: PageCall, id: string): Promise<PendingForm | undefined> => {
    const text = await forms.read(env.identity.formToken, id);
    const kept = text === undefined ? undefined : (JSON.parse(text) as PendingForm | { result: KeptResult });
    return kept && 'shown' in kept ? { ...kept, id } : undefined;
  };
  const carryOut = async (call: PageCall, visit: Visit, proposal: Proposal): Promise<Response> => {
    const { identity } = visit;
    const end = await hosting?.begin(identity, proposal);
    const ended: ActionEnd = await proposal.carryOut().then(
      (outcome) => ({ outcome }),
      (error: unknown) => ({ error }),
    );
    if ('error' in ended && !(ended.error instanceof Failure)) onFault(ended.error, visit.path);
    // The write has been made, even if its end cannot be recorded.
    await end?.(ended).catch((error: unknown) => onFault(error, visit.path));
    const back = await storeResult(identity, proposal, ended);
    if (back !== undefined) return call.redirect(options.base + back, 303);
    return answer(call, () => renderResult(proposal, ended));
  };
  /** @returns the address of the page that shows the result; undefined if it must be shown now, and only once */
  const storeResult = async (
    { formToken: owner }: Identity,
    { title, back, changes = [] }: Proposal,
    ended: ActionEnd,
  ): Promise<string | undefined> => {
    if ('error' in ended) return undefined;
    const { secret, message, details, file, ...plain } = ended.outcome;
    if (secret ?? message ?? details ?? file) return undefined;
    // Values may be stored if Undo is offered, because a row that may hold a misplaced key has no Undo.
    const shown = plain.undo?.length ? changes.slice(0, resultChangesMax) : [];
    const result: KeptResult = { ...plain, title, back, changes: shown };
    // The write succeeded, even if its result can't be kept.
    const id = await forms.keep({ owner, text: JSON.stringify({ result }) }).catch(() => undefined);
    return id && `${back === './' ? '' : back}${back.includes('?') ? '&' : '?'}done=${id}`;
  };
  const confirmProposal = async (
    call: PageCall,
    visit: Visit,
    proposal: Proposal,
    kept: PendingForm,
  ): Promise<Response> => {
    const { identity } = visit;
    const { refusal, refunds } = proposal;
    if (refusal !== undefined) return answer(call, () => renderNote(409, refusal));
    if (basisOf(await freezeProposal(proposal)) !== basisOf(kept.shown))
      return answer(call, () =>
        renderOvertaken(addListToAddress(`${kept.path}?again=${kept.id}`, visit.list)),
      );
    // Support may only refund, because refunds are counted.
    if (!may(identity, 'operator') && refunds === undefined) return answer(call, renderRefusal);
    if (!(await forms.take(identity.formToken, kept.id))) return answer(call, () => expiredStep);
    const limit = refunds === undefined ? undefined : await hosting?.refusedRefund(identity, refunds);
    if (limit !== undefined) return answer(call, () => renderNote(403, limit));
    return carryOut(call, visit, proposal);
  };

  return {
    /** Keeps what was typed when the confirmation page leads back to the form. */
    async form(call: PageCall, route: FormRoute | AnswerRoute): Promise<Response> {
      const again = call.req.query('again');
      const kept = again ? await loadForm(call, again) : undefined;
      return answer(call, (visit) =>
        route.page(visit, kept?.path === visit.path ? { fields: kept.fields } : undefined),
      );
    },
    async propose(call: PageCall, route: FormRoute | AnswerRoute): Promise<Response> {
      const { confirming: kept, identity } = call.env;
      const { visit, release } = freezeVisit(call, deps, kept?.atMs);
      if (!kept && visit.field('rows') !== '')
        return answer(call, (shown) => route.page(shown, { fields: visit.fields }));
      try {
        if ('answer' in route) {
          release();
          const { outcome, ...words } = await route.answer(visit);
          return await answer(call, () => renderResult(words, { outcome }));
        }
        const proposed = await route.propose(visit);
        const proposal = { ...proposed, back: visit.list ?? proposed.back };
        release();
        if (kept) return await confirmProposal(call, visit, proposal, kept);
        const { fields, path, nowMs: atMs } = visit;
        const shown = await freezeProposal(proposal);
        const text = JSON.stringify({ path, fields, atMs, shown } satisfies Omit<PendingForm, 'id'>);
        const id = await forms.keep({ owner: identity.formToken, text });
        return call.redirect(options.base + addListToAddress(`confirm/${id}`, visit.list), 303);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const { message, exitCode } = error;
        if (kept) return answer(call, () => renderNote(409, message));
        // Exit code 2 is a usage failure: the form itself is wrong.
        const isOvertaken = exitCode !== 2;
        const problem = isOvertaken ? message : await findAllProblems(visit, route, message);
        const tried = { fields: visit.fields, problem, isOvertaken };
        return answer(call, async () => Object.assign(await route.page(visit, tried), { status: 422 }));
      }
    },
    async confirm(call: PageCall, id: string): Promise<Response> {
      const kept = await loadForm(call, id);
      return answer(call, (visit) => (kept ? renderConfirmation(visit, kept) : expiredStep));
    },
    load: loadForm,
    expire: (call: PageCall) => answer(call, () => expiredStep),
  };
}

const emptyPage: Pick<Page, 'fields'> = {};
/** Enough for any form, because each round finds the problems of at least one check. */
const roundsMax = 8;

/**
 * A proposal stops at the first check that fails. Proposes again with valid examples in place of wrong values until no other field is
 * wrong, so that the form shows all errors at once.
 */
async function findAllProblems(visit: Visit, route: FormRoute | AnswerRoute, first: string): Promise<string> {
  // A sheet is one field, so proposing again would find no other field but read all rows.
  const typed = Object.keys(visit.fields).filter((name) => !/^(form_token|list|seen)$/.test(name));
  if ('answer' in route || typed.length < 2) return first;
  // If the page fails here, it fails again in the answer, which reports it.
  const { fields = [] } = await route.page(visit, { fields: visit.fields }).catch(() => emptyPage);
  let problem = first;
  for (let round = 0; round < roundsMax; round += 1) {
    const wrong = assignErrors(problem, fields);
    if (wrong.size === 0) return problem;
    const replaced = fields.filter(({ name }) => wrong.has(name));
    const examples = replaced.map(({ name, value, placeholder, input }) => [
      name,
      value || (placeholder ?? (input ? '1' : '')),
    ]);
    const sent: Visit['fields'] = { ...visit.fields, ...Object.fromEntries(examples) };
    const example = { ...visit, fields: sent, field: (name: string) => sent[name] ?? '' };
    const next = await route.propose(example).then(
      () => '',
      (error: unknown) => (error instanceof Failure && error.exitCode === 2 ? error.message : ''),
    );
    const isNew = (each: string): boolean =>
      !mentionsField(each, replaced) &&
      [...assignErrors(each, fields).keys()].some((name) => !wrong.has(name));
    const more = next
      .replace(/^nothing was written: /, '')
      .split('; ')
      .filter(isNew);
    if (more.length === 0) return problem;
    problem = [problem, ...more].join('; ');
  }
  return problem;
}

/** A plan sees the time at which it was first made, so that it is the same again; carrying it out uses the clock. */
function freezeVisit(call: PageCall, deps: CountingDeps, atMs = deps.ports.clock.now()) {
  let isFrozen = true;
  const { clock } = deps.ports;
  const frozenClock = { ...clock, now: () => (isFrozen ? atMs : clock.now()) };
  const visit = visitFor(call, deps);
  return {
    visit: { ...visit, nowMs: atMs, ports: { ...visit.ports, clock: frozenClock } },
    release: (): void => void (isFrozen = false),
  };
}

const resultChangesMax = 20;

const forever = 'private, max-age=31536000, immutable';

type StaticFiles = ReturnType<typeof readStaticFiles>;

/** The only files that pages load; no path leads to a folder. */
const readStaticFiles = () => ({
  style: nameStatic('console.css', 'css', sharedStyle + consoleStyle),
  scripts: ['enhance.js', 'live.js'].map((name) =>
    nameStatic(name, 'javascript', readFileSync(new URL(name, import.meta.url), 'utf8')),
  ),
});

/** The name changes with the content, so browsers may keep the file forever. */
function nameStatic(name: string, type: string, body: string) {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
  return { address: `static/${name.replace('.', `.${hash}.`)}`, type: `text/${type}; charset=utf-8`, body };
}
