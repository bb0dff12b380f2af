/** The events of a background response: which of its stream are kept, and those that are made of what is stored. */
import { eventFrame } from '../../../stream/sse-encode.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';

const frameEnd = '\n\n';
const lastTypes = ['response.completed', 'response.failed'];

/** The frames of a text of the stream, without comments. */
export const framesOf = (text: string): string[] =>
  text
    .split(frameEnd)
    .filter((frame) => frame !== '' && !frame.startsWith(':'))
    .map((frame) => frame + frameEnd);

/** After it no event follows. */
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
export const createdFrame = (accepted: JsonRecord): string =>
  frameOf({ type: 'response.created', sequence_number: 0, response: { ...accepted, ...nothingYet } });

/** The last event of a response that has ended. Incomplete and cancelled ones end as completed ones do. */
export function lastFrame(response: JsonRecord, sequenceNumber: number): string {
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
  eventFrame(event.type, JSON.stringify(event));
