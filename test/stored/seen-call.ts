/** One call of a client that may leave before it has the answer. */
import { hold } from './seen-events.ts';
import type { Asked } from './seeded-client.ts';
import type { Stage } from './stage.ts';

/** Longer than any fault of a process. */
const hangsMs = 240_000;

export interface Plan {
  /** The client leaves after this many frames of a stream, or milliseconds of JSON. */
  leaveAfter: number;
  /** The same of `strike`. */
  strikeAfter: number;
  strike(): void;
  /** The headers have arrived, so the id is known. */
  begun?(id: string): void;
}

export interface SeenCall {
  /** Undefined without an answer. */
  status: number | undefined;
  headers: Record<string, string>;
  text: string;
  /** The client has received everything. */
  isWhole: boolean;
  frames: number;
}

export const requestIdOf = ({ headers }: Pick<SeenCall, 'headers'>): string => headers['x-request-id'] ?? '';
/** The request id of the answer. */
export const firstIdOf = (seen: Pick<SeenCall, 'headers'>): string =>
  seen.headers['x-relay-replayed'] ?? requestIdOf(seen);

export const unharmedPlan: Plan = { leaveAfter: Infinity, strikeAfter: Infinity, strike: () => {} };

export async function seenCall(stage: Stage, asked: Asked, plan: Plan = unharmedPlan): Promise<SeenCall> {
  const over = new AbortController();
  const isStreamed = (asked.body as { stream?: boolean }).stream === true;
  const after = (milliseconds: number): Promise<void> =>
    milliseconds === Infinity ? new Promise(() => {}) : stage.clock.sleep(milliseconds, over.signal);
  const seen: SeenCall = { status: undefined, headers: {}, text: '', isWhole: false, frames: 0 };
  const leaving = new AbortController();
  if (!isStreamed) {
    void after(plan.strikeAfter).then(() => over.signal.aborted || plan.strike());
    void after(plan.leaveAfter).then(() => over.signal.aborted || leaving.abort('left'));
  }
  const work = read(stage, { ...asked, signal: leaving.signal }, { seen, plan, isStreamed });
  const gone = new Promise<void>((resolve) => leaving.signal.addEventListener('abort', () => resolve()));
  const hung = after(hangsMs).then(() => over.signal.aborted || hold(false, 'an answer hangs'));
  await Promise.race([work, gone, hung]).finally(() => over.abort('over'));
  return { ...seen };
}

interface Reading {
  seen: SeenCall;
  plan: Plan;
  isStreamed: boolean;
}

async function read(stage: Stage, asked: Asked, { seen, plan, isStreamed }: Reading): Promise<void> {
  const { status, headers, body } = await stage.ask(asked);
  if (status === 599) return;
  seen.headers = headers;
  seen.status = status;
  // A client that has left by then knows no id.
  if (status === 200 && headers['x-request-id'] && asked.signal?.aborted !== true)
    plan.begun?.(headers['x-request-id']);
  let isStruck = false;
  const strike = (): void => {
    if (isStruck || !isStreamed || seen.frames < plan.strikeAfter) return;
    isStruck = true;
    plan.strike();
  };
  strike();
  if (typeof body === 'string') seen.text = body;
  else if (plan.leaveAfter > 0 || !isStreamed)
    try {
      for await (const text of body) {
        seen.text += text;
        seen.frames = framesOf(seen.text).length;
        strike();
        if (isStreamed && seen.frames >= plan.leaveAfter) break;
      }
    } catch {
      return; // The connection broke.
    }
  seen.isWhole = isStreamed && status === 200 ? endsWell(seen.text) : parses(seen.text);
}

/** Whole frames without comments. */
export const framesOf = (text: string): string[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .filter((frame) => !frame.startsWith(':'))
    .map((frame) => `${frame}\n\n`);

const endsWell = (text: string): boolean => {
  const last = framesOf(text).at(-1) ?? '';
  return /^event: response\.(completed|failed)\n|^data: \[DONE\]|^event: error\n|^data: \{"error"/.test(last);
};

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
