/** A stored response as clients see it. Its status is that of the store: the object is as the last writer left it. */
import type { JsonRecord } from '../../wire/json.ts';
import type { ErrorObject } from '../../wire/invalid-request.ts';
import { buildResponseError } from './response-object.ts';
import { renderEventFrame } from '../../stream/sse.ts';

/** The error of a response whose run is gone or never began. OpenAI's code, as clients know it. */
const runLost = {
  message: 'The run of this response stopped early, and its output is lost. Send the request again.',
  type: 'internal_error',
  param: null,
  code: 'server_error',
} as const;

export function showResponse(status: string, response: JsonRecord): JsonRecord {
  if (response['status'] === status) return response;
  const shown = { ...response, status };
  return status === 'failed' ? { ...shown, error: response['error'] ?? runLost } : shown;
}

export const buildFailedResponse = (response: JsonRecord, error: ErrorObject): JsonRecord => ({
  ...response,
  status: 'failed',
  error: buildResponseError(error),
});

// The objects that the paths of a stored response answer with.

/**
 * The response with the state of its turn as a first item, for a client that goes on without the store. Answers that have
 * a seal already, because their client asked for it, stay as they are.
 */
export function withSeal(response: JsonRecord, seal: string | undefined): JsonRecord {
  const { id, output } = response;
  if (seal === undefined || !Array.isArray(output) || output.some(isSealed)) return response;
  const item = {
    id: `${String(id).replace(/^resp-/, 'rs_')}_state`,
    type: 'reasoning',
    status: 'completed',
    summary: [],
    encrypted_content: seal,
  };
  return { ...response, output: [item, ...output] };
}

const isSealed = (item: JsonRecord): boolean => typeof item['encrypted_content'] === 'string';

export const buildDeletedResponse = (id: string): JsonRecord => ({ id, object: 'response', deleted: true });

// The events of a background response: which of its stream are kept, and those that are made of what is stored.

const frameEnd = '\n\n';
const lastTypes = ['response.completed', 'response.failed'];

/** The frames of a text of the stream, without comments. */
export const framesOf = (text: string): string[] =>
  text
    .split(frameEnd)
    .filter((frame) => frame !== '' && !frame.startsWith(':'))
    .map((frame) => frame + frameEnd);

export const isLastFrame = (frame: string): boolean =>
  lastTypes.some((type) => frame.startsWith(`event: ${type}\n`));

const nothingYet = {
  status: 'queued',
  completed_at: null,
  output: [],
  usage: null,
  error: null,
  incomplete_details: null,
};

/** The first event, number 0, of the response as it was accepted. The same whoever makes it. */
export const renderCreatedFrame = (accepted: JsonRecord): string =>
  frameOf({ type: 'response.created', sequence_number: 0, response: { ...accepted, ...nothingYet } });

/** The last event of a response that has ended. Incomplete and cancelled ones end as completed ones do. */
export function renderLastFrame(response: JsonRecord, sequenceNumber: number): string {
  const { status, error } = response;
  const head = (type: string): JsonRecord & { type: string } => ({
    type,
    sequence_number: sequenceNumber,
    response,
  });
  return status === 'failed'
    ? frameOf({ ...head('response.failed'), error })
    : frameOf(head('response.completed'));
}

const frameOf = (event: JsonRecord & { type: string }): string =>
  renderEventFrame(event.type, JSON.stringify(event));
