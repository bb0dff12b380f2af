/** Why a call has a story. */
import type { Refusal } from '../http/refusal.ts';
import type { EndedCall } from './ended-call.ts';

export type StoryCause = 'failed' | 'refused' | 'retried' | 'slow' | 'client_gone';

/** Empty: nobody will ask. */
export function storyCauses({ end, refusal, dispatched }: EndedCall): StoryCause[] {
  const { tried = [], usualMs } = dispatched?.report ?? {};
  return [
    ...(refusal ? [isOfCaller(refusal) ? ('refused' as const) : ('failed' as const)] : []),
    ...(tried.length > 1 ? ['retried' as const] : []),
    ...(usualMs === undefined || refusal ? [] : ['slow' as const]),
    ...(end === 'client_gone' ? ['client_gone' as const] : []),
  ];
}

/** As the outcome of the request's line has it. */
function isOfCaller({ status, body, reason = '' }: Refusal): boolean {
  const { code } = body.error;
  if (code === 'rate_limit_exceeded') return reason.startsWith('limit_');
  return status < 500;
}
