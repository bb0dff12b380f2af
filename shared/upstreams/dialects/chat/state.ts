/**
 * What of an answer has to come back with its turn, and how it is put back. Reasoning text comes back only with turns
 * that called tools; signatures and `reasoning_details` always do.
 */
import { asRecord, recordsIn, textIn, type JsonRecord } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { telling } from '../../answer-writer.ts';
import type { RequestSettings } from '../../dialect.ts';
import { echoedFields } from '../../quirks.ts';
import { bytesOf, type Kept } from '../../../wire/chat-response.ts';

/** What was kept of one turn. The calls' ones by the index that clients see. */
interface KeptState {
  /** The name under which the upstream sent its reasoning: it takes it back under the same. */
  reasoning: { field: 'reasoning_content' | 'reasoning'; text: string } | undefined;
  details: readonly unknown[];
  /** Of the turn itself. */
  extra: JsonRecord | undefined;
  /** Of its calls. */
  callExtras: ReadonlyMap<number, JsonRecord>;
  /** The length of the visible text, in UTF-16 code units. */
  textLength: number;
  /** The number of calls. */
  calls: number;
}

/** The parts of a turn: reasoning, text, calls. Undefined: nothing of it has to come back. */
export function statePartsOf(kept: KeptState): readonly StatePart[] | undefined {
  const { reasoning, details, extra, callExtras, textLength, calls } = kept;
  const parts: StatePart[] = [];
  // The details of a turn hold its reasoning text, too.
  if (details.length > 0) parts.push({ opaque: { reasoning_details: details } });
  else if (reasoning && calls > 0) parts.push({ opaque: { [reasoning.field]: reasoning.text } });
  if (textLength > 0) parts.push({ text: textLength });
  for (let call = 0; call < calls; call += 1) {
    parts.push({ call });
    const extraContent = callExtras.get(call);
    if (extraContent) parts.push({ opaque: { call, extra_content: extraContent } });
  }
  if (extra) parts.push({ opaque: { extra_content: extra } });
  return telling(parts);
}

/** Google's replacement for a signature that was lost or is another vendor's. Source: "Thought signatures". */
const skippedSignature = 'skip_thought_signature_validator';

/**
 * An assistant message with its state: what the client sent back itself, else what was kept, else the vendor's
 * replacement. `message`: as it goes up otherwise; it is not changed.
 */
export function withState(
  message: JsonRecord,
  parts: readonly StatePart[] | undefined,
  { quirks, without }: RequestSettings,
): JsonRecord {
  // Reasoning between tags has no field: what a client sends back as one is the relay's own reading of it.
  const echoes = quirks.echoes ?? (quirks.thinkTags ? [] : echoedFields);
  const isLost = without.has('state') || without.has('echoes');
  const accepted = isLost ? [] : echoes;
  const fields = withoutEchoes(message, accepted);
  const calls = recordsIn(fields['tool_calls']).map((call) => withoutEchoes(call, accepted));
  if (!isLost) for (const part of parts ?? []) if ('opaque' in part) putBack(part.opaque, fields, calls);

  const first = without.has('echoes') ? undefined : calls[0];
  if (first && quirks.wantsBack === 'reasoning_content') nameReasoning(fields);
  if (first && quirks.wantsBack === 'thought_signature')
    first['extra_content'] = signed(first['extra_content']);
  return calls.length > 0 ? { ...fields, tool_calls: calls } : fields;
}

/** Both names of one text, which goes up once: under the client's name, if it sent one. */
const reasoningTexts = ['reasoning_content', 'reasoning'];

/** Changes `fields` and `calls`. */
function putBack(opaque: JsonRecord, fields: JsonRecord, calls: readonly JsonRecord[]): void {
  const { call: index, ...kept } = opaque;
  const target = typeof index === 'number' ? calls[index] : fields;
  if (!target) return;
  const isThere = (field: string): boolean =>
    (reasoningTexts.includes(field) ? reasoningTexts : [field]).some((name) => name in target);
  for (const field of echoedFields) if (field in kept && !isThere(field)) target[field] = kept[field];
}

/** Servers of the same model name its reasoning in two ways. Lost reasoning is empty. Changes `fields`. */
function nameReasoning(fields: JsonRecord): void {
  if (fields['reasoning_content'] !== undefined || fields['reasoning_details'] !== undefined) return;
  fields['reasoning_content'] = textIn(fields['reasoning']);
  delete fields['reasoning'];
}

/** Only the first of parallel calls is signed. */
function signed(extra: unknown): JsonRecord {
  const namespaces = asRecord(extra);
  if (Object.values(namespaces).some((each) => textIn(asRecord(each)['thought_signature']) !== ''))
    return namespaces;
  const google = { ...asRecord(namespaces['google']), thought_signature: skippedSignature };
  return { ...namespaces, google };
}

const withoutEchoes = (source: JsonRecord, accepted: readonly string[]): JsonRecord =>
  Object.fromEntries(
    Object.entries(source).filter(
      ([field]) => accepted.includes(field) || !echoedFields.some((echoed) => echoed === field),
    ),
  );

// Puts the pieces of OpenRouter's `reasoning_details` together again, so that each block comes back whole.

/** The fields of text. Encrypted blocks come whole. */
const textFields = ['text', 'summary'] as const;

export class DetailBlocks {
  readonly blocks: JsonRecord[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(pieces: readonly JsonRecord[]): void {
    for (const piece of pieces) {
      const last = this.blocks.at(-1);
      if (last && continues(last, piece)) {
        this.#kept.bytes(addedBytes(last, piece));
        this.blocks[this.blocks.length - 1] = joined(last, piece);
      } else {
        this.#kept.value(piece);
        this.blocks.push(piece);
      }
    }
  }
}

/** Only neighbours are joined, because the order of blocks is part of what is checked. */
const continues = (block: JsonRecord, piece: JsonRecord): boolean =>
  block['type'] === piece['type'] &&
  block['index'] === piece['index'] &&
  textFields.some((field) => typeof block[field] === 'string' || typeof piece[field] === 'string') &&
  (block['signature'] ?? undefined) === undefined;

/** What a piece adds to its block: texts grow, and what is the same takes no more room. */
function addedBytes(block: JsonRecord, piece: JsonRecord): number {
  let bytes = 0;
  for (const [field, value] of Object.entries(piece)) if (value !== block[field]) bytes += bytesOf(value);
  return bytes;
}

function joined(block: JsonRecord, piece: JsonRecord): JsonRecord {
  const said = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
  const whole: JsonRecord = { ...block, ...Object.fromEntries(said) };
  for (const field of textFields) {
    const [before, next] = [block[field], piece[field]];
    if (typeof before === 'string' && typeof next === 'string') whole[field] = before + next;
  }
  return whole;
}
