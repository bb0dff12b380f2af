import { asRecord, isRecord } from '../convert/json-record.ts';
import type { ChannelType } from './channel-type.ts';
import type { UpstreamReply } from './ports.ts';
import { Refusal } from './refusal.ts';
import { UpstreamFailure } from './upstream-failure.ts';

/** Statuses with which an upstream says that the caller's request is at fault; another channel would say the same. */
const callersFault = new Set([400, 404, 413, 422]);
const bodyBytesMax = 64 * 1024;
const messageLengthMax = 600;

export interface RefusalReading {
  /** Values that must not come back to a client. */
  secrets: readonly string[];
  /** How this kind of upstream says that not the caller but our secret or the row is at fault. */
  ownFault: ChannelType['ownFault'];
}

/** An upstream's answer that is not a 2xx: the caller's refusal with the upstream's code, or the channel's failure. */
export async function readUpstreamRefusal(
  reply: UpstreamReply,
  { secrets, ownFault }: RefusalReading,
): Promise<Refusal | UpstreamFailure> {
  const failure = new UpstreamFailure(
    'status',
    reply.status,
    retryAfterSeconds(reply.headers['retry-after']),
  );
  if (!callersFault.has(reply.status)) return failure;
  const value = parse(await readText(reply));
  // Gemini wraps its error into a list.
  const body = asRecord(Array.isArray(value) ? value[0] : value);
  const error = isRecord(body['error']) ? body['error'] : undefined;
  if (!error) return failure;
  const own = ownFault?.(reply.status, error);
  if (own) return own === 'secret' ? new UpstreamFailure('secret', reply.status) : failure;
  return new Refusal(
    reply.status,
    {
      message: scrub(error['message'], secrets) ?? 'The upstream refused the request.',
      type: 'invalid_request_error',
      param: scrub(error['param'], secrets) ?? null,
      code: wordOf(scrub(error['code'], secrets)) ?? 'upstream_refused',
    },
    { reason: `upstream_refused_${reply.status}` },
  );
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

/** An upstream's words without what could tell who it is: addresses, hosts, keys, markup. */
function scrub(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  let text = value.slice(0, 4 * messageLengthMax);
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '[removed]');
  return text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[removed]')
    .replace(/\b(?:sk|pk|rk|org|proj|key|AIza)[-_][A-Za-z0-9_*.-]{6,}/g, '[removed]')
    .replace(
      /\b(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cn|cloud|internal|local|app)\b(?::\d+)?(?:\/\S*)?/gi,
      '[removed]',
    )
    .replace(/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '[removed]')
    .replace(/\blocalhost(?::\d+)?/gi, '[removed]')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, messageLengthMax);
}
