/** Embeddings: texts or tokens in, a vector for each out. A call like every other, whose answer is one document. */
import * as z from 'zod/mini';
import { vectorNumbersMax, type EmbeddingInput } from '../../wire/canonical-call.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { jsonAnswer, type Endpoint, type Renderer } from '../endpoint.ts';
import { parseRequest } from '../parse-request.ts';
import { endpointRoutes } from '../routes.ts';

/** OpenAI's [platform.openai.com/docs/api-reference/embeddings/create]. */
const inputsMax = 2_048;
const inputTokensMax = 300_000;
/** Tokens that come as numbers, and what is around them. */
const bodyValuesMax = inputTokensMax + 10_000;

export const EmbeddingsRequest = z.looseObject({
  model: z.string().check(z.minLength(1)),
  input: z.unknown(),
  dimensions: z.nullish(z.int().check(z.gte(1))),
  encoding_format: z.nullish(z.enum(['float', 'base64'])),
  user: z.nullish(z.string()),
  official: z.nullish(z.boolean()),
});

export const embeddingsEndpoint: Endpoint = {
  ...endpointRoutes.embeddings,
  bodyValuesMax,
  read(body) {
    const asked = parseRequest(EmbeddingsRequest, body);
    const { model, input, dimensions, encoding_format: encoding, user, official, ...unknown } = asked;
    const inputs = inputsOf(input);
    checkAnswer(inputs.length, dimensions ?? 1);
    return {
      call: {
        form: endpointRoutes.embeddings.name,
        request: { model, user, official, messages: [] },
        unknown,
        embedding: { inputs, dimensions: dimensions ?? undefined },
        // Spread over the channels that have the model: there is no conversation that one of them should keep.
        conversation: String(inputs[0]).slice(0, 100),
      },
      // There is no output, so none of a price of output is held.
      outputTokensMax: 0,
      inputTokensMax,
      renderer: (identity, { model: answering = () => identity.model }) =>
        createVectorsRenderer(answering, encoding === 'base64' ? encodeBase64 : numbersOf),
    };
  },
};

/** Throws an InvalidRequest that names the first wrong one. */
function inputsOf(input: unknown): EmbeddingInput['inputs'] {
  const isOne = typeof input === 'string' || (Array.isArray(input) && typeof input[0] === 'number');
  const inputs: unknown[] = isOne ? [input] : Array.isArray(input) ? input : [];
  if (inputs.length > inputsMax) {
    const words = `'input' has ${inputs.length} inputs; at most ${inputsMax} are accepted in one request.`;
    throw new InvalidRequest('array_above_max_length', 'input', words);
  }
  const isFitting = typeof inputs[0] === 'string' ? isText : isTokens;
  const wrong = inputs.findIndex((each) => !isFitting(each));
  if (inputs.length > 0 && wrong < 0) return inputs as (string | number[])[];
  const param = isOne || wrong < 0 ? 'input' : `input[${wrong}]`;
  const wanted = 'a text, an array of texts, an array of tokens or an array of those, none of them empty';
  throw new InvalidRequest(
    'invalid_value',
    param,
    `Invalid value for '${param}': expected 'input' to be ${wanted}.`,
  );
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isToken = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isTokens = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isToken);

/** Before anything is charged. How long vectors are where nobody says it shows the answer alone. */
function checkAnswer(inputs: number, dimensions: number): void {
  if (inputs * dimensions <= vectorNumbersMax) return;
  const words = `${inputs} vectors of ${dimensions} dimensions don't fit into one answer. Send fewer inputs per request, or ask for fewer dimensions.`;
  throw new InvalidRequest('answer_too_large', 'dimensions', words);
}

/** Writes the vectors one by one, so that only one of them is text at a time. */
function createVectorsRenderer(answering: () => string, textOf: (vector: Float32Array) => string): Renderer {
  let last: ChatChunk | undefined;
  function* answer(): Generator<string[], void, undefined> {
    const { vectors = [], usage, quota } = last ?? {};
    yield ['{"object":"list","data":['];
    for (const [index, vector] of vectors.entries())
      yield [`${index > 0 ? ',' : ''}{"object":"embedding","index":${index},"embedding":${textOf(vector)}}`];
    const { prompt_tokens, total_tokens } = usage ?? {};
    const beside = { model: answering(), usage: { prompt_tokens, total_tokens }, quota: quota ?? undefined };
    yield [`],${JSON.stringify(beside).slice(1)}`];
  }
  // The last chunk has the usage, and what the chunk of vectors has.
  return { ...jsonAnswer, push: (chunk) => ((last = chunk), []), end: answer };
}

/** Nine digits say which number of 32 bits it is, and are written three times as fast as the fewest that do. */
const numbersOf = (vector: Float32Array): string =>
  `[${Array.from(vector, (number) => number.toPrecision(9)).join()}]`;

/** Encodes little-endian bytes, as OpenAI's clients ask for and read them. */
function encodeBase64(vector: Float32Array): string {
  const view = new DataView(new ArrayBuffer(4 * vector.length));
  for (let at = 0; at < vector.length; at += 1) view.setFloat32(4 * at, vector[at]!, true);
  const bytes = new Uint8Array(view.buffer);
  let text = '';
  // Appending one character at a time takes three times as long, and spreading the bytes five times.
  for (let from = 0; from < bytes.length; from += argumentsMax)
    text += Reflect.apply(String.fromCharCode, undefined, bytes.subarray(from, from + argumentsMax));
  return `"${btoa(text)}"`;
}

/** Limits the arguments of one call, because they are all on the stack. */
const argumentsMax = 8192;
