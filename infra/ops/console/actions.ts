/** Takes a form to its proposal, a proposal to its confirmation, and that to its result. Writes nothing unasked. */
import type { Context } from 'hono';
import { Failure } from '../../../shared/operate/operator-failure.ts';
import type { Clock } from '../../../shared/relay/ports/clock.ts';
import type { Page } from './layout/frame.ts';
import { confirmPage } from './pages/confirm.ts';
import { resultPage } from './pages/result.ts';
import type { Proposals } from './visit/proposals.ts';
import type { FormRoute } from './visit/routes.ts';
import type { ConsoleOptions, Identity, Visit } from './visit/visit.ts';

export interface Environment {
  Bindings: { identity: Identity };
  Variables: { fields: Record<string, string> };
}
export type Call = Context<Environment>;

export interface ActionParts {
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

export function actions({ proposals, clock, options, visitOf, answer, note, onFault }: ActionParts) {
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
