/**
 * A call in a background window at a Responses vendor: how it is submitted, asked after and cancelled, and how far its response is.
 * Source: developers.openai.com, "Background mode", and the reference of `background_options`, November 2026.
 */
import { asRecord, listIn, parseJson, type JsonRecord } from '../../../wire/json.ts';
import type { Submissions } from '../../dialect.ts';

const running = new Set(['queued', 'in_progress']);
/** Other last states have no answer: the vendor lets what it does not finish in time expire. */
const answered = new Set(['completed', 'incomplete', 'failed']);

export const submissions: Submissions = {
  /** The vendor refuses `stream` beside a window, and keeps an answer for ten minutes only if it may not store it. */
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
    // Without it the state of the turn is missing.
    if (!cancels) address.searchParams.append('include[]', 'reasoning.encrypted_content');
    return address.href;
  },
  read(text) {
    const response = asRecord(parseJson(text));
    const { id, status } = response;
    if (typeof id !== 'string' || typeof status !== 'string') return undefined;
    if (running.has(status)) return { id, isRunning: true, response };
    return { id, isRunning: false, response: answered.has(status) ? response : endOf(response) };
  },
};

/** A cancelled response has an answer that was cut off. Without any, and where it expired, there is none. */
function endOf(response: JsonRecord): JsonRecord {
  const isUsed = Number(asRecord(response['usage'])['output_tokens']) > 0;
  if (response['status'] === 'cancelled' && (isUsed || listIn(response['output']).length > 0))
    return { ...response, status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
  return { ...response, status: 'failed', error: { code: 'server_error', message: 'It was not finished.' } };
}
