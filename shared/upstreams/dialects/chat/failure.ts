import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { ChannelType } from '../../channel-type.ts';
import type { UpstreamReply } from '../../exchange.ts';
import { Refusal } from '../../../relay/http/refusal.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';

/** Statuses with which an upstream says that the caller's request is at fault; another channel would say the same. */
const callersFault = new Set([400, 404, 413, 422]);
const bodyBytesMax = 64 * 1024;
const messageLengthMax = 600;

export interface RefusalReading {
  /** What must not come back to a client: the secret, the upstream's host. */
  withheld: readonly string[];
  /** Knows how this kind of upstream says that not the caller but our secret or the row is at fault. */
  type: Pick<ChannelType, 'ownFault'>;
}

/** An upstream's answer that is not a 2xx: the caller's refusal with the upstream's code, or the channel's failure. */
export async function readUpstreamRefusal(
  reply: UpstreamReply,
  { withheld, type }: RefusalReading,
): Promise<Refusal | UpstreamFailure> {
  const failure = new UpstreamFailure(
    'status',
    reply.status,
    retryAfterSeconds(reply.headers['retry-after']),
  );
  if (!callersFault.has(reply.status)) {
    // Left unread, the answer would hold its connection for as long as the upstream likes.
    await reply.body[Symbol.asyncIterator]().return?.();
    return failure;
  }
  const value = parse(await readText(reply));
  // Gemini wraps its error into a list.
  const body = asRecord(Array.isArray(value) ? value[0] : value);
  const error = errorIn(body);
  if (!error) return failure;
  const own = type.ownFault?.(reply.status, error);
  if (own) return own === 'secret' ? new UpstreamFailure('secret', reply.status) : failure;
  return new Refusal(
    reply.status,
    {
      message: scrub(error['message'], withheld) ?? 'The upstream refused the request.',
      type: 'invalid_request_error',
      param: scrub(error['param'], withheld) ?? null,
      code: wordOf(scrub(error['code'], withheld)) ?? 'upstream_refused',
    },
    { reason: `upstream_refused_${reply.status}` },
  );
}

/** The error of an answer: OpenAI's object, or one of the shapes that servers behind compatible upstreams use. */
function errorIn(body: JsonRecord): JsonRecord | undefined {
  const { error, message, detail } = body;
  if (isRecord(error)) return error;
  if (typeof error === 'string') return { message: error };
  if (typeof message === 'string') return { message, code: body['code'], param: body['param'] };
  if (typeof detail === 'string') return { message: detail };
  return Array.isArray(detail) ? { message: asRecord(detail[0])['msg'] } : undefined;
}

/** A code goes into the log too, where no sentence of an upstream belongs. */
const wordOf = (text: string | undefined): string | undefined =>
  text !== undefined && /^[\w.-]{1,64}$/.test(text) ? text : undefined;

/** Seconds of a Retry-After header; its date form is not worth a clock here. */
function retryAfterSeconds(header: string | undefined): number | undefined {
  const seconds = Number(header);
  return header !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, 3600)
    : undefined;
}

async function readText(reply: UpstreamReply): Promise<string> {
  const utf8 = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const piece of reply.body) {
    bytes += piece.byteLength;
    if (bytes > bodyBytesMax) return '';
    text += utf8.decode(piece, { stream: true });
  }
  return text + utf8.decode();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Stands for a withheld word until the patterns are through: a host in an address has to stay one for them. */
const placeholder = 'x-withheld-x';

/** What an upstream's words may tell of who it is: hosts and addresses, keys, markup, files. */
const revealing: [RegExp, string][] = [
  [/<[^>]*>/g, ' '],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[removed]'],
  [/\b(?:sk|pk|rk|org|proj|key|AIza)[-_][A-Za-z0-9_*.-]{6,}/g, '[removed]'],
  [
    /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cn|cloud|internal|local|app)\b(?::\d+)?(?:\/\S*)?/gi,
    '[removed]',
  ],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '[removed]'],
  [/\[[0-9a-f:.%]*:[0-9a-f:.%]*\](?::\d+)?/gi, '[removed]'],
  [/\b[a-z][a-z0-9.-]*:\d{2,5}\b/gi, '[removed]'],
  [/\blocalhost\b/gi, '[removed]'],
  [/(?:\/[\w.@-]+){2,}/g, '[removed]'],
  [/x-withheld-x/g, '[removed]'],
  [/\s+/g, ' '],
];

/** A stack trace is nothing that a caller can act on. */
const stackTrace = /Traceback \(most recent|\n\s+at |\bat \S+ \(\S+:\d+:\d+\)|File "[^"]+", line \d+/;

function scrub(value: unknown, withheld: readonly string[]): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  let text = (value.slice(0, 4 * messageLengthMax).split(stackTrace)[0] ?? '').trimEnd();
  for (const word of withheld) if (word !== '') text = text.replaceAll(word, placeholder);
  for (const [pattern, replacement] of revealing) text = text.replace(pattern, replacement);
  return text.trim().slice(0, messageLengthMax) || undefined;
}
