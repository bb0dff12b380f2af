/**
 * Submits, polls and cancels a call in a background window at a Responses vendor, and reads the state of its response.
 * Source: developers.openai.com, "Background mode", and the reference of `background_options`, November 2026.
 */
import { asRecord, listIn, parseJson, type JsonRecord } from '../../../wire/json.ts';
import type { Submissions } from '../../dialect.ts';

const runningStatuses = new Set(['queued', 'in_progress']);
/** Responses in other final states have no answer: a response that the vendor does not finish in time expires. */
const answeredStatuses = new Set(['completed', 'incomplete', 'failed']);

export const submissions: Submissions = {
  /** The vendor refuses `stream` together with a window. Without `store`, it would keep the answer for only ten minutes. */
  submit(request, hours) {
    const { stream: _stream, stream_options: _options, ...body } = asRecord(parseJson(request.body));
    const background_options = { completion_window: hours };
    return {
      ...request,
      body: JSON.stringify({ ...body, background: true, background_options, store: true }),
    };
  },
  address(url, id, cancels) {
    const address = new URL(url);
    address.pathname += `/${encodeURIComponent(id)}${cancels ? '/cancel' : ''}`;
    // Without this, the reply lacks the turn state.
    if (!cancels) address.searchParams.append('include[]', 'reasoning.encrypted_content');
    return address.href;
  },
  read(text) {
    const response = asRecord(parseJson(text));
    const { id, status } = response;
    if (typeof id !== 'string' || typeof status !== 'string') return undefined;
    if (runningStatuses.has(status)) return { id, isRunning: true, response };
    return {
      id,
      isRunning: false,
      response: answeredStatuses.has(status) ? response : readEndedResponse(response),
    };
  },
};

/** A cancelled response has an answer that was cut off. Without any, and where it expired, there is none. */
function readEndedResponse(response: JsonRecord): JsonRecord {
  const isUsed = Number(asRecord(response['usage'])['output_tokens']) > 0;
  if (response['status'] === 'cancelled' && (isUsed || listIn(response['output']).length > 0))
    return { ...response, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  return {
    ...response,
    status: 'failed',
    error: { code: 'server_error', message: 'The vendor did not finish it.' },
  };
}
