/** Limits on output tokens. Never asks for more than the channel's maximum and what the balance covers. */
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { RequestSettings } from '../../dialect.ts';
import { limitFields } from '../../quirks.ts';

const fieldsOf = ({ limitField }: RequestSettings): string[] => [...new Set([...limitFields, limitField])];

/** Puts the limit into a field that the upstream accepts, and lowers it. Changes `body`. */
export function setLimits(body: JsonRecord, settings: RequestSettings): void {
  if (settings.without.has('limit')) {
    for (const field of fieldsOf(settings)) delete body[field];
    return;
  }
  moveLimit(body, settings.quirks.limitFields);
  lowerLimits(body, settings);
}

/** The limit that is sent: the smallest, if there are several. */
export function limitOf(body: JsonRecord, settings: RequestSettings): number | undefined {
  const limits = fieldsOf(settings).map((field) => body[field]);
  const sent = limits.filter((limit) => typeof limit === 'number');
  return sent.length === 0 ? undefined : Math.min(...sent);
}

/** Moves a limit out of a field that the upstream does not accept. */
function moveLimit(body: JsonRecord, accepted: readonly string[] | undefined): void {
  const [first] = accepted ?? [];
  if (first === undefined) return;
  for (const field of limitFields.filter((each) => !accepted?.includes(each))) {
    body[first] ??= body[field];
    if (body[first] === undefined) delete body[first];
    delete body[field];
  }
}

function lowerLimits(body: JsonRecord, settings: RequestSettings): void {
  const { maxOutputTokens, outputTokensLimit, limitField } = settings;
  const max = Math.min(maxOutputTokens ?? Infinity, outputTokensLimit ?? Infinity);
  const sent = fieldsOf(settings).filter((field) => typeof body[field] === 'number');
  for (const field of sent) body[field] = Math.min(Number(body[field]), max);
  if (sent.length === 0 && outputTokensLimit !== undefined) body[limitField] = max;
}
