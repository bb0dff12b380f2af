/**
 * The operators' console as a function of a request and an identity: no process, no listening, so that it can stand behind
 * any login. It reads and writes through the opened ports alone, and what it writes was shown and confirmed before.
 */
import { Hono } from 'hono';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { actions, type Call, type Environment } from './actions.ts';
import { answering } from './answer.ts';
import { guardHeaders } from './answer-headers.ts';
import { formOf, isRefusal } from './form-guard.ts';
import { refusalOf } from './guard.ts';
import { pages } from './pages/all-pages.ts';
import { faultPage, missingPage, notePage } from './pages/failures.ts';
import { Proposals } from './visit/proposals.ts';
import type { Routes } from './visit/routes.ts';
import { readStaticFiles } from './static-files.ts';
import type { ConsoleOptions, Identity, Visit } from './visit/visit.ts';

export interface ConsoleParts {
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
