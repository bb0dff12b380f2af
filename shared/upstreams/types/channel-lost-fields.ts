/**
 * Which of a client's fields had no effect at a channel. Dialects name what they leave out; here, for all of them, the
 * row's own `drop` is added, and what asks for nothing is taken away.
 */
import type { CanonicalCall } from '../../wire/canonical-call.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import type { SentBody } from '../dialect.ts';

const isNothing = (value: unknown): boolean =>
  (value ?? '') === '' ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0);

/** Values that are in force without their field, too: OpenAI's defaults. */
const defaults = new Map<string, unknown>([
  ['temperature', 1],
  ['top_p', 1],
  ['presence_penalty', 0],
  ['frequency_penalty', 0],
  ['repetition_penalty', 1],
  ['top_logprobs', 0],
  ['n', 1],
  ['service_tier', 'auto'],
  ['verbosity', 'medium'],
  ['truncation', 'disabled'],
  ['tool_choice', 'auto'],
  ['parallel_tool_calls', true],
]);

/** Fields that are between the client and the relay alone, which streams and stores as it does for every call. */
const relaysOwn = new Set(['store', 'stream']);

function asksForNothing(field: string, value: unknown): boolean {
  if (relaysOwn.has(field)) return true;
  if (defaults.has(field)) return (value ?? defaults.get(field)) === defaults.get(field);
  // Text is what every answer has.
  if (field === 'modalities' && Array.isArray(value) && value.join() === 'text') return true;
  return isNothing(value);
}

/** Whether a message has state that its client holds in the upstream's own fields, on the message or on its calls. */
const holdsState = (message: JsonRecord): boolean =>
  !isNothing(message['reasoning_details']) ||
  [message, ...recordsIn(message['tool_calls'])].some(({ extra_content: extra }) => !isNothing(extra));

const recordsIn = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.filter(isRecord) : []);

/** `body`, `dropped`: what the dialect made of the call, and left out. `drop`, `set`: the channel's own. */
export function lostFields(
  { request, unknown, items }: CanonicalCall,
  {
    body,
    dropped,
    drop,
    set,
    carriesItems,
  }: Pick<SentBody, 'body' | 'dropped' | 'carriesItems'> & { drop: readonly string[]; set: object },
): string[] {
  const asked = { ...unknown, ...request };
  const losesState =
    request.messages.some(holdsState) && !Object.values(body).flatMap(recordsIn).some(holdsState);
  const left = drop.filter((field) => Object.hasOwn(asked, field) && !Object.hasOwn(set, field));
  // A name that is no field of the client's says what became of something else, such as the state of a turn.
  const isLost = (field: string): boolean =>
    !Object.hasOwn(asked, field) || !asksForNothing(field, asked[field]);
  const lostItems = carriesItems === true ? [] : (items?.lost ?? []);
  return [...new Set([...dropped, ...left, ...lostItems, ...(losesState ? ['reasoning'] : [])])].filter(
    isLost,
  );
}
