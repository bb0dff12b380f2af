import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import type { Handle, RelayResponse } from '../../relay/http/http.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import type { Ids } from '../../relay/ports/ids.ts';
import { asRefusal, refusalResponse, refuse } from '../../relay/http/refusal.ts';
import type { Environment } from '../system/environment.ts';
import { isFromOrigin, originHeader } from './origin-check.ts';
import { toRelayRequest } from '../lambda/function-url-request.ts';

export interface EdgeParts {
  handle: Handle;
  environment: Environment;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/** Answers one Function URL event, whatever happens; `x-request-id` is on every answer. Never rejects. */
export async function answerEvent(
  parts: EdgeParts,
  event: LambdaFunctionURLEvent,
  context: Context,
): Promise<RelayResponse> {
  const id = parts.ids.next();
  try {
    const full = await answer(parts, { id, event, context });
    const response = event.requestContext.http.method === 'HEAD' ? await withoutBody(full) : full;
    return {
      ...response,
      headers: { ...response.headers, 'x-request-id': id },
      done: response.done.catch((error: unknown) => parts.log.fault(id, error)),
    };
  } catch (error) {
    parts.log.fault(id, error);
    return refusalResponse(asRefusal(error), id);
  }
}

interface Invocation {
  id: string;
  event: LambdaFunctionURLEvent;
  context: Context;
}

async function answer(parts: EdgeParts, { id, event, context }: Invocation): Promise<RelayResponse> {
  const { environment, clock, handle } = parts;
  const startedMs = clock.now();
  const request = toRelayRequest(event, {
    id,
    local: environment.local,
    hostDeadlineMs: startedMs + context.getRemainingTimeInMillis(),
  });
  if (isFromOrigin(request.headers[originHeader], environment.originSecrets)) {
    // The secret opens every function of this stack: nothing behind the edge has a use for it.
    delete request.headers[originHeader];
    return handle(request);
  }
  const refusal = refuse('origin_denied', 'This address is not public. Use the base URL of the relay.');
  parts.log.request({
    request_id: id,
    endpoint: 'edge',
    status: refusal.status,
    end: 'refused',
    duration_ms: clock.now() - startedMs,
    code: refusal.body.error.code,
  });
  return refusalResponse(refusal, id);
}

/** HEAD is answered like GET, without the body; a body that was already being made is told to stop. */
async function withoutBody(response: RelayResponse): Promise<RelayResponse> {
  if (typeof response.body !== 'string') await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: '' };
}
