/** OpenAI's embeddings: a call without a conversation, answered by vectors. */
import { vectorNumbersMax, type CanonicalCall } from '../../wire/canonical-call.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { asRecord, isRecord, listIn, recordsIn, removeNulls, type JsonRecord } from '../../wire/json.ts';
import { findError } from '../vendor-errors.ts';
import type { UpstreamEvent } from '../body-events.ts';
import {
  CannotCarry,
  type AnswerReader,
  type DialectCode,
  type ReaderContext,
  type RequestSettings,
  type SentBody,
  applyRowFields,
} from '../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../exchange.ts';
import { parseFieldRules } from '../restricted-fields.ts';

/** Throws CannotCarry for other calls, and if the row drops the requested length of vectors. */
function buildEmbeddingsBody(
  { request, embedding, unknown }: CanonicalCall,
  settings: RequestSettings,
): SentBody {
  if (!embedding) throw new CannotCarry('model', 'This model only supports embeddings.');
  const { model, quirks, drop } = settings;
  const { inputs: input, dimensions } = embedding;
  if (dimensions !== undefined && drop.includes('dimensions')) throw createFixedLengthError();
  // An upstream whose fields are all known refuses others. If the client names nobody, the account is the user.
  const user = request.user ?? request.safety_identifier;
  const extraFields = quirks.acceptedFields ? {} : { ...unknown, user };
  const encoding = quirks.packsVectors ? 'base64' : undefined;
  const sent = { model, input, ...removeNulls({ ...extraFields, dimensions, encoding_format: encoding }) };
  applyRowFields(sent, { ...settings, stream: false });
  return { body: sent, dropped: quirks.acceptedFields ? Object.keys(unknown) : [], wrappedTools: new Set() };
}

const createFixedLengthError = (): CannotCarry =>
  new CannotCarry('dimensions', "The vectors of this model have a fixed length: leave out 'dimensions'.");

/** No other candidate would help, but the client can. */
function tooManyNumbersError(): ErrorInAnswer {
  const message = 'The vectors do not fit into one answer. Send fewer inputs, or ask for fewer dimensions.';
  return new ErrorInAnswer({ code: 'request_too_large', param: 'input', message });
}

/**
 * Passes nothing on before each input has one valid vector, all of one length: until then another candidate can
 * answer.
 */
class EmbeddingsReader implements AnswerReader {
  readonly done = false;
  readonly finishedChoices = 0;
  readonly #context: ReaderContext;
  readonly #vectors = new Map<number, Float32Array>();
  #vectorCount = 0;
  #numberCount = 0;
  #inputTokens: number | undefined;

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  /** Vectors may come one by one, before the rest of their document. */
  push(event: UpstreamEvent): ChatChunk[] {
    const value = event.kind === 'value' ? event.value : undefined;
    if (!isRecord(value)) return [];
    for (const one of [value, ...recordsIn(value['data'])]) this.#takeVector(one);
    const error = this.#vectorCount === 0 ? findError(value) : undefined;
    if (error) throw new ErrorInAnswer(error);
    const { total_tokens: total, prompt_tokens: count = total } = asRecord(value['usage']);
    if (typeof count === 'number') this.#inputTokens = Math.round(count);
    return [];
  }

  end(): ChatChunk[] {
    const { identity, sent } = this.#context;
    const { requestId, ...shared } = identity;
    const { input, dimensions } = sent.body;
    if (this.#vectorCount === 0) throw new UpstreamFailure('empty');
    const vectors = Array.from(listIn(input), (_, index) => this.#vectors.get(index));
    const length = vectors[0]?.length;
    const isSound = (vector: Float32Array | undefined): vector is Float32Array =>
      vector !== undefined && vector.length > 0 && vector.length === length && vector.every(Number.isFinite);
    if (this.#vectorCount !== vectors.length || !vectors.every(isSound)) throw new UpstreamFailure('junk');
    // Many servers ignore the requested length. It must not put the channel into cooldown for other clients.
    if (length !== (dimensions ?? length)) throw createFixedLengthError();
    const object = 'chat.completion.chunk';
    return [{ id: `chatcmpl-${requestId}`, object, ...shared, choices: [], usage: null, vectors }];
  }

  fail(error: unknown): never {
    throw error instanceof UpstreamFailure && error.kind === 'too_large' ? tooManyNumbersError() : error;
  }

  /** Vectors have no output tokens, and no upstream reports any. */
  report() {
    return { usage: { input: this.#inputTokens, output: 0 }, state: undefined, serviceTier: undefined };
  }

  #takeVector({ index, embedding }: JsonRecord): void {
    if (embedding === undefined) return;
    const vector = typeof embedding === 'string' ? unpackNumbers(embedding) : readNumbers(embedding);
    this.#numberCount += vector.length;
    if (this.#numberCount > vectorNumbersMax) throw tooManyNumbersError();
    const place = Number(index ?? this.#vectorCount);
    // Some servers give every vector the index 0, so their order in the list counts [BerriAI/litellm 25656].
    const isTaken = place === 0 && this.#vectors.has(0);
    this.#vectors.set(isTaken ? this.#vectorCount : place, vector);
    this.#vectorCount += 1;
  }
}

const readNumbers = (list: unknown): Float32Array =>
  Float32Array.from(listIn(list), (each) => (typeof each === 'number' ? each : NaN));

/** Little-endian numbers of 32 bits. Returns none if the text is anything else. */
function unpackNumbers(base64: string): Float32Array {
  let bytes = '';
  try {
    bytes = atob(base64);
  } catch {}
  if (bytes.length % 4 !== 0) return new Float32Array();
  const numbers = new Float32Array(bytes.length / 4);
  // The bytes are little-endian, like integers in memory, so each number is written as one integer.
  const bits = new Int32Array(numbers.buffer);
  const byteAt = (at: number): number => bytes.charCodeAt(at);
  for (let place = 0, at = 0; place < bits.length; place += 1, at += 4)
    bits[place] = byteAt(at) | (byteAt(at + 1) << 8) | (byteAt(at + 2) << 16) | (byteAt(at + 3) << 24);
  return numbers;
}

/** The relay itself sets lengths and forms of vectors. Sources: the vendors' pages of November 2026. */
const tenantFields = parseFieldRules([
  // The role of a text in a search: Voyage, Cohere, NVIDIA NIM, OpenRouter; Jina.
  'input_type task late_chunking',
  // Truncation of longer texts: NVIDIA NIM and Cohere, Voyage; vLLM.
  'truncate truncation truncate_prompt_tokens truncation_side add_special_tokens normalize',
]);

export const embeddings: DialectCode = {
  body: buildEmbeddingsBody,
  tenantFields,
  hasLongLists: true,
  Reader: EmbeddingsReader,
};
