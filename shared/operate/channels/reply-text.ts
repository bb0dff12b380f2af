/**
 * Reads the text of an upstream's answer to a test, with the reader that clients' answers go through. The text is
 * shown and never billed.
 */
import { BodyEvents } from '../../upstreams/body-events.ts';
import type { Dialect, ReaderContext } from '../../upstreams/dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { isRecord } from '../../wire/json-record.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';

export interface ReplyText {
  /** As the upstream names it. */
  model: string;
  text: string;
  /** `finish_reason`, a note that it is missing, or how the answer failed. */
  ending: string;
}

const bytesMax = 1024 * 1024;
const limits = { answerBytesMax: bytesMax, documentBytesMax: bytesMax, lineLengthMax: bytesMax };

/** What a reader made of a whole body. */
export interface ReplyReading {
  chunks: ChatChunk[];
  /** As the upstream names it, if it does. */
  model: string | undefined;
  /** Whether the upstream reported usage. */
  hasUsage: boolean;
  /** An UpstreamFailure or an ErrorInAnswer, after the chunks that came before it. */
  failure: unknown;
}

export function readReply(
  body: string,
  { Reader }: Pick<Dialect, 'Reader'>,
  context: ReaderContext,
): ReplyReading {
  const reader = new Reader(context);
  const events = new BodyEvents(limits);
  const chunks: ChatChunk[] = [];
  let model: string | undefined;
  let failure: unknown;
  try {
    const bytes = new TextEncoder().encode(body);
    for (const event of [...events.push(bytes), ...events.end()]) {
      if (event.kind === 'value') model ??= modelIn(event.value);
      chunks.push(...reader.push(event));
    }
    chunks.push(...reader.end());
  } catch (error) {
    failure = error;
  }
  return { chunks, model, hasUsage: reader.usage !== undefined, failure };
}

/** Undefined: the body is no answer in this dialect. */
export function replyText(
  body: string,
  dialect: Pick<Dialect, 'Reader'>,
  context: ReaderContext,
): ReplyText | undefined {
  const { chunks, model, failure } = readReply(body, dialect, context);
  const failed = failure === undefined ? undefined : reasonOf(failure);
  const choices = chunks.flatMap((chunk) => chunk.choices.slice(0, 1));
  if (choices.length === 0) return undefined;
  const textOf = (field: 'content' | 'reasoning_content'): string =>
    choices.map(({ delta }) => delta[field] ?? '').join('');
  const finish = choices.findLast((choice) => choice.finish_reason)?.finish_reason;
  return {
    model: model ?? 'model not named',
    text: textOf('content') || textOf('reasoning_content'),
    ending: failed ?? finish ?? 'no finish_reason',
  };
}

/** Throws what is no failure of the upstream. */
export function reasonOf(error: unknown): string {
  if (error instanceof ErrorInAnswer) return 'an error in the answer';
  const failure = UpstreamFailure.from(error);
  if (failure) return failure.reason;
  throw error;
}

/** The name of the model in an event, or in the object that the event carries. */
function modelIn(event: unknown): string | undefined {
  if (!isRecord(event)) return undefined;
  const names = [event, ...Object.values(event).filter(isRecord)].map((object) => object['model']);
  return names.find((name) => typeof name === 'string');
}
