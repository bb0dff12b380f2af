import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { TokenLogprob, TopLogprob } from './responses-response.ts';

/** The log probabilities of a chunk's text in the form of Responses. Entries without a token are left out. */
export function tokenLogprobs(value: unknown): TokenLogprob[] {
  const { content } = asRecord(value);
  return records(content).flatMap((entry) => {
    const known = logprobOf(entry);
    return known ? [{ ...known, top_logprobs: records(entry['top_logprobs']).flatMap(topOf) }] : [];
  });
}

const records = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.filter(isRecord) : []);
const topOf = (entry: JsonRecord): TopLogprob[] => {
  const known = logprobOf(entry);
  return known ? [known] : [];
};

function logprobOf({ token, logprob, bytes }: JsonRecord): TopLogprob | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined;
  const numbers = Array.isArray(bytes)
    ? bytes.filter((byte): byte is number => typeof byte === 'number')
    : [];
  return { token, logprob, bytes: numbers };
}
