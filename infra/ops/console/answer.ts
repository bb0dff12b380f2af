/** Makes pages one after the other, and counts what each of them read. Never shows more of an error than its message. */
import { Failure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import type { Call } from './actions.ts';
import { frame, type Page } from './layout/frame.ts';
import { failurePage, faultPage } from './pages/failures.ts';
import type { StaticFiles } from './static-files.ts';
import type { ConsoleOptions, Visit } from './visit/visit.ts';

export interface AnswerParts {
  ports: OperatorPorts;
  options: ConsoleOptions;
  statics: StaticFiles;
  visitOf: (call: Call) => Visit;
  onFault: (error: unknown, path: string) => void;
}

export function answering({ ports, options, statics, visitOf, onFault }: AnswerParts) {
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
