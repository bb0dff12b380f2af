/** Answers to requests that the server does not take: it is ending, or has no room. */
import { refusalResponse, refuse, type Refusal } from '../../shared/relay/http/refusal.ts';
import type { HostedHandle, RelayResponse } from '../../shared/relay/http/http.ts';

export type TurnedAway = 'ending' | 'requests_at_once' | 'no_room' | 'slow' | 'too_large';

const unavailable = (message: string, reason: string): Refusal =>
  refuse('unavailable', `${message} Nothing was charged; try again.`, {
    headers: { 'retry-after': '1' },
    reason,
  });

const refusals: Record<TurnedAway, () => Refusal> = {
  ending: () => unavailable('This server is going away.', 'server_ending'),
  requests_at_once: () =>
    unavailable('This server answers as many requests as it can.', 'server_requests_at_once'),
  no_room: () => unavailable('This server has no room for the body right now.', 'server_no_room'),
  slow: () => unavailable('The body came too slowly while others waited.', 'server_slow_body'),
  too_large: () => refuse('request_too_large', 'The body has more than 4194304 bytes (4 MB).'),
};

/** The answer; its line is in the log. */
export function turnedAway({ ids, log }: Pick<HostedHandle, 'ids' | 'log'>, why: TurnedAway): RelayResponse {
  const refusal = refusals[why]();
  const id = ids.next();
  log.request({
    request_id: id,
    endpoint: 'server',
    status: refusal.status,
    end: 'refused',
    duration_ms: 0,
    code: refusal.body.error.code,
    reason: refusal.reason,
  });
  return refusalResponse(refusal, id);
}
