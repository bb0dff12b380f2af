/** A server of embeddings: what OpenAI's refuses, and vectors that have in common what their texts have. */
import { countPromptTokens } from './script.ts';
import { jsonText } from '../../../shared/wire/json.ts';
import { replyWithJson, parseObject, refuseByRule, hashSha256 } from './vendor.ts';
import type { Rules, VendorRefusal, VendorReply } from './vendor.ts';

type EmbeddingCall = Record<'body', Record<string, unknown>> & { model: string; inputs: unknown[] };

/** Such an endpoint. `models`: how many numbers their vectors have. */
export function createEmbeddingEndpoint(
  models: Record<string, number>,
  refuse: (refusal: VendorRefusal) => VendorReply,
): { rules: string[]; serve(text: string): VendorReply } {
  const rules = rulesOf(models);
  const serve = (text: string): VendorReply => {
    const body = parseObject(text) ?? {};
    const { input, dimensions } = body;
    const model = jsonText(body['model']);
    const inputs = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input];
    const tokens = inputs.reduce((sum: number, each) => sum + countTokens(each), 0);
    const packed = body['encoding_format'] === 'base64';
    const buildEmbedding = (each: unknown, index: number): object => {
      const vector = vectorOf(jsonText(each), Number(dimensions ?? models[model]));
      const embedding = packed ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector);
      return { object: 'embedding', index, embedding };
    };
    const refused = refuseByRule(rules, { body, model, inputs }, refuse);
    if (refused) return refused;
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return replyWithJson(200, { object: 'list', data: inputs.map(buildEmbedding), model, usage });
  };
  return { rules: Object.keys(rules), serve };
}

const countTokens = (input: unknown): number =>
  Array.isArray(input) ? input.length : countPromptTokens(jsonText(input));

/** A vector of length 1: each word moves some dimensions up or down. */
function vectorOf(text: string, length: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(length);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text])
    for (const digits of hashSha256(word).match(/.{4}/g) ?? []) {
      const number = Number.parseInt(digits, 16);
      vector[number % length]! += number < 2 ** 15 ? 1 : -1;
    }
  // `Math.hypot(...vector)` takes longer than the rest of the answer.
  let squares = 0;
  for (const number of vector) squares += number ** 2;
  const norm = Math.sqrt(squares) || 1;
  return vector.map((number) => number / norm);
}

const refused = (message: string): VendorRefusal => ({ status: 400, message });

const fields = new Set(['model', 'input', 'dimensions', 'encoding_format', 'user']);

const isInput = (input: unknown): boolean =>
  Array.isArray(input)
    ? input.length > 0 && input.every((token) => Number.isInteger(token) && token >= 0)
    : typeof input === 'string' && input !== '';

/** [platform.openai.com/docs/api-reference/embeddings/create, and the threads named]. */
const rulesOf = (models: Record<string, number>): Rules<EmbeddingCall> => ({
  'embedding-fields'({ body }) {
    const field = Object.keys(body).find((name) => !fields.has(name));
    return field !== undefined && refused(`Unrecognized request argument supplied: ${field}`);
  },
  // Models of conversations are known [infiniflow/ragflow 1835, 2024-08-06].
  'embedding-model': ({ model }) =>
    !Object.hasOwn(models, model) &&
    (model.startsWith('gpt-')
      ? { status: 403, message: 'You are not allowed to generate embeddings from this model' }
      : { status: 404, message: `The model \`${model}\` does not exist.`, code: 'model_not_found' }),
  'embedding-input': ({ inputs }) =>
    (inputs.length === 0 || inputs.length > 2048 || !inputs.every(isInput)) &&
    refused("'$.input' is invalid. Please check the API reference."),
  // [SciPhi-AI/R2R 354, 2024-05-28]
  'embedding-dimensions': ({ body, model }) =>
    body['dimensions'] !== undefined &&
    model.endsWith('ada-002') &&
    refused('This model does not support specifying dimensions.'),
});
