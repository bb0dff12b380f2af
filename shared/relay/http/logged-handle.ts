/** A handle with one log line: of what is not a call to a model. What it answers is written down after it is done, never before. */
import type { Clock } from '../ports/host.ts';
import type { Log, RequestLog } from '../ports/telemetry.ts';
import type { Handle, RelayRequest, RelayResponse } from './http.ts';
import { type AnswerForm, toRefusal, respondRefusal } from './refusal.ts';

/** Facts that the checks have found so far. The line of a refusal has only these. */
type Found = Pick<RequestLog, 'endpoint' | 'key_hint' | 'account' | 'reason'>;

interface LoggedOptions {
  endpoint: string;
  /** Answers and refusals have no line. */
  failuresOnly?: boolean;
  /** Chooses the form of refusals for a client. Default: OpenAI's. */
  formOf?: (request: RelayRequest) => AnswerForm | undefined;
}

/**
 * Never rejects.
 * @param work calls `found` with what is known of the request as soon as it is
 */
export const createLoggedHandle =
  (
    ports: { clock: Pick<Clock, 'now'>; log: Log },
    { endpoint, failuresOnly = false, formOf }: LoggedOptions,
    work: (request: RelayRequest, found: (more: Found) => void) => Promise<RelayResponse>,
  ): Handle =>
  async (request) => {
    const startedMs = ports.clock.now();
    let known: Found = { endpoint };
    const log = (end: Pick<RequestLog, 'status' | 'end' | 'code' | 'reason'>): void => {
      if (failuresOnly && end.status < 500) return;
      const duration_ms = ports.clock.now() - startedMs;
      ports.log.request({ request_id: request.id, ...known, ...end, duration_ms });
    };
    try {
      const response = await work(request, (more) => void (known = more));
      const { status, done } = response;
      return { ...response, done: done.then(() => log({ status, end: 'completed' })) };
    } catch (error) {
      const refusal = toRefusal(error);
      const { status, reason, body } = refusal;
      const { code } = body.error;
      if (code === 'internal') ports.log.fault(request.id, error);
      log({ status, end: status >= 500 ? 'failed' : 'refused', code, reason });
      return respondRefusal(refusal, request.id, formOf?.(request));
    }
  };
