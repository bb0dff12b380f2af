/**
 * Builds the OpenAPI document of the HTTP surface from the schemas that check requests, the schemas of account and lists,
 * the schemas by which tests check all other answers, and the table of refusals. Run it to write docs/openapi.json.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod/mini';
import { answerRefusal } from '../../shared/endpoints/messages/errors.ts';
import { refusals, type RefusalCode } from '../../shared/relay/http/refusal.ts';
import { asRecord, isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import { errorObject } from '../support/wire-schemas.ts';
import { messagesErrorOf, messagesEventOf } from './answers.ts';
import { answerSchemas, operations, requestSchemas, type Answer, type Operation } from './operations.ts';

export const documentFile = 'docs/openapi.json';

const codes = Object.keys(refusals) as RefusalCode[];
const overloaded = 529;

/** How a refusal looks in the form of Messages. */
function refusedOnMessages(code: RefusalCode, isOverloaded = false) {
  const [status, type] = refusals[code];
  const error = { message: '', type, param: null, code };
  const answer = answerRefusal({ status, error, isOverloaded }, '');
  return { status: answer.status, type: String(asRecord(asRecord(answer.body)['error'])['type']) };
}

const messagesTypes = new Set([
  ...codes.map((code) => refusedOnMessages(code).type),
  refusedOnMessages('upstream_unavailable', true).type,
]);
const refusalTypes = new Set(codes.map((code) => refusals[code][1]));

const messagesError = messagesErrorOf([...messagesTypes].toSorted());
const refusalCode = z.enum(codes);
const errorCode = z.union([refusalCode, z.string()]);

const errorSchemas = {
  RefusalCode: refusalCode,
  Error: z.strictObject({
    // API Gateway has one form for all paths, which clients of Messages read as well.
    type: z.optional(
      z.literal('error').check(z.describe('Only if API Gateway refuses a body before the relay reads it')),
    ),
    error: z.strictObject({
      ...errorObject.shape,
      type: z.enum([...refusalTypes].toSorted()),
      code: errorCode.check(
        z.describe(
          'A code of the relay, of an invalid field, or of the upstream. New versions may add codes',
        ),
      ),
    }),
  }),
  MessagesError: messagesError,
};

interface DocumentOptions {
  /** Refuses undocumented fields in answers, for tests. The published document allows them, because new fields may be added. */
  isClosed?: boolean;
}

export function buildDocument({ isClosed = false }: DocumentOptions = {}): JsonRecord {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const paths: Record<string, JsonRecord> = {};
  for (const [route, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ');
    (paths[path] ??= {})[method.toLowerCase()] = describeOperation(path, operation);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Relay',
      version,
      description:
        'LLM calls in the forms of OpenAI and Anthropic, prepaid. Amounts are yuan, times are Unix seconds. New versions may add fields to answers. HEAD works wherever GET does.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The relay that serves this document' }],
    tags: [...new Set(Object.values(operations).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    webhooks: {
      notice: {
        post: {
          operationId: 'receiveNotice',
          tags: ['account'],
          summary:
            'The relay notifies your receiver of a low balance, the end of a plan or key, or a failing channel',
          security: [],
          parameters: describeHeaders(['x-relay-timestamp', 'x-relay-signature']),
          requestBody: { required: true, content: jsonContent(['Notice']) },
          responses: { '2XX': { description: 'Received. The relay retries after any other status' } },
        },
      },
    },
    components: {
      schemas: describeSchemas(isClosed),
      responses: listRefusalAnswers(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key of the relay: sk-...' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same key' },
      },
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, description]) => [
          name,
          { description, schema: { type: 'string' } },
        ]),
      ),
    },
  };
}

// Schemas.

function describeSchemas(isClosed: boolean): JsonRecord {
  const registry = z.registry<{ id: string }>();
  const answers = { ...answerSchemas, MessagesEvent: messagesEventOf(messagesError), ...errorSchemas };
  for (const [id, schema] of Object.entries({ ...requestSchemas, ...answers })) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    unrepresentable: 'any',
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ zodSchema, jsonSchema }) => {
      // The only checks in code among these schemas ask whether a value is an object.
      if (zodSchema._zod.def.type === 'custom') jsonSchema.type = 'object';
      // Any value, or null.
      if (jsonSchema.anyOf?.some((each) => Object.keys(each).length === 0)) delete jsonSchema.anyOf;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  const outer = new Set(['$schema', '$id']);
  return Object.fromEntries(
    Object.entries(schemas).map(([id, given]) => {
      const schema = Object.fromEntries(Object.entries(given).filter(([name]) => !outer.has(name)));
      return [id, isClosed || Object.hasOwn(requestSchemas, id) ? schema : openSchema(schema)];
    }),
  );
}

/** Allows more fields, and leaves out the patterns that only tests need to tell types apart. */
function openSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(openSchema);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(
    ([name, inner]) =>
      !(name === 'additionalProperties' && inner === false) &&
      !(name === 'pattern' && String(inner).includes('(?!')),
  );
  return Object.fromEntries(kept.map(([name, inner]) => [name, openSchema(inner)]));
}

const refOf = (kind: string, name: string): JsonRecord => ({ $ref: `#/components/${kind}/${name}` });

function listHeaders(names: readonly string[]): JsonRecord {
  return Object.fromEntries(names.map((name) => [name, refOf('headers', name)]));
}

function jsonContent(names: readonly string[]): JsonRecord {
  const [only, ...more] = names.map((name) => refOf('schemas', name));
  return { 'application/json': { schema: more.length === 0 ? only : { anyOf: [only, ...more] } } };
}

// Operations.

const headers: Readonly<Record<string, string>> = {
  'x-request-id': 'The id of the request, also that of its answer and of its ledger row',
  'request-id': 'The same, for clients of Messages',
  etag: 'Changes with the document',
  'retry-after': 'Seconds to wait; with 409, 429 and 503',
  'x-should-retry': '`false`: do not send the request again',
  'x-ratelimit-limit-requests': 'Only for keys with a limit: requests a minute',
  'x-ratelimit-remaining-requests': 'Only for keys with a limit',
  'x-ratelimit-reset-requests': 'Only for keys with a limit: such as `12s`',
  'x-relay-attempts': 'How many channels were tried',
  'x-relay-model': 'The model that answers for an alias',
  'x-relay-dropped': 'Fields of the request that were not sent to the upstream',
  'x-relay-effort': 'The effort that was sent, if it is not the requested one',
  'x-relay-tool-choice': 'The tool choice that was sent, if it is not the requested one',
  'x-relay-limited-by': '`balance` or `budget`: the remaining amount limits the answer',
  'x-relay-max-tokens': 'That limit, in tokens',
  'x-relay-store': '`failed`: the answer is not stored',
  'x-relay-replayed': 'The id of the first request with this `Idempotency-Key`, whose answer this is',
  'x-relay-estimated': '`true`: the count is an estimate',
  'anthropic-ratelimit-unified-status': 'Only for keys with a budget: `allowed` or `allowed_warning`',
  'anthropic-ratelimit-unified-reset': 'Only for keys with a budget: when it resets, in Unix seconds',
};
const refusedHeaders = ['x-request-id', 'retry-after', 'x-should-retry', 'x-relay-attempts'];
const isOfCalls = (name: string): boolean => name.startsWith('x-relay-') || name.startsWith('x-ratelimit-');

const requestHeaders: Readonly<Record<string, string>> = {
  'Idempotency-Key':
    'The request runs and costs once: a repeat within 24 hours is refused or gets the first answer',
  'x-relay-tags': 'Tags of the call: `team=search,env=prod`',
  'anthropic-version': 'Such as 2023-06-01',
  'anthropic-beta': 'Beta features, sent only to upstreams that speak Messages',
  'x-api-key': 'Any value: the answer has the form of Messages',
  'If-None-Match': 'The `etag` of your copy',
  'stripe-signature': "Stripe's signature of the body",
  'x-relay-timestamp': 'Unix seconds',
  'x-relay-signature': '`v1=` and the hex HMAC-SHA256, with your secret, of timestamp + "." + body',
};

function describeOperation(path: string, operation: Operation): JsonRecord {
  const { id, tag, summary, key, query = {}, headers: asked = [], body, answers } = operation;
  const parameters = [
    ...Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...Object.entries(query).map(([name, schema]) => {
      const { $schema: _, description, ...rules } = z.toJSONSchema(schema, { io: 'input' });
      if (rules.maximum === Number.MAX_SAFE_INTEGER) delete rules.maximum;
      const required = !(schema instanceof z.ZodMiniOptional);
      return Object.assign({ name, in: 'query', required, schema: rules }, description && { description });
    }),
    ...describeHeaders(asked),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: { none: [], bearer: [{ bearer: [] }], either: [{ apiKey: [] }, { bearer: [] }] }[key],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: jsonContent([body]) } }),
    responses: {
      ...describeRefusals(operation),
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [
          status,
          describeAnswer(status, answer, operation),
        ]),
      ),
    },
  };
}

const describeHeaders = (names: readonly string[]): JsonRecord[] =>
  names.map((name) => ({
    name,
    in: 'header',
    description: requestHeaders[name],
    schema: { type: 'string' },
  }));

function describeAnswer(status: string, { json, events, media }: Answer, operation: Operation): JsonRecord {
  const { id, tag, form } = operation;
  const isCall = tag === 'calls' && operation.key !== 'none';
  const shown = Object.keys(headers).filter(
    (name) =>
      name === 'x-request-id' ||
      (name === 'request-id' && form !== undefined) ||
      (name.startsWith('anthropic-') && form === 'messages') ||
      (name === 'etag' && id === 'getDocument') ||
      (isOfCalls(name) && isCall),
  );
  const content = {
    ...(json && jsonContent(json)),
    ...(events && { 'text/event-stream': { schema: refOf('schemas', events) } }),
    ...Object.fromEntries((media ?? []).map((type) => [type, {}])),
  };
  return {
    description: describeStatus(Number(status), { json, events }),
    headers: listHeaders(shown),
    ...(Object.keys(content).length > 0 && { content }),
  };
}

function describeStatus(status: number, { json, events }: Answer): string {
  if (status === 404) return 'No page, or no model with this name';
  if (status === 304) return 'Your copy is current';
  if (status === 201) return 'Created';
  const words = [
    'OK',
    // The status was sent with white space before the call failed.
    ...(json?.some((name) => name.endsWith('Error'))
      ? ['If a call fails after 45 s, it has this status and an error as its body']
      : []),
    ...(events === undefined
      ? []
      : [
          'In a stream, the schema describes the `data` of each event; comments and some events are heartbeats',
        ]),
  ];
  return words.join('. ');
}

/** One answer for each form of errors. Each operation adds its codes. */
function listRefusalAnswers(): JsonRecord {
  const forms = {
    Error: ['Error'],
    MessagesError: ['MessagesError'],
    EitherError: ['Error', 'MessagesError'],
  };
  return Object.fromEntries(
    Object.entries(forms).map(([name, schemas]) => {
      const shown = name === 'Error' ? refusedHeaders : ['request-id', ...refusedHeaders];
      return [name, { description: 'Refused', headers: listHeaders(shown), content: jsonContent(schemas) }];
    }),
  );
}

function describeRefusals({ form, refusals: listed, passesRefusals = false }: Operation): JsonRecord {
  const isMessages = form === 'messages';
  const name = form === undefined ? 'Error' : isMessages ? 'MessagesError' : 'EitherError';
  const byStatus = Map.groupBy(new Set(listed), (code) =>
    isMessages ? refusedOnMessages(code).status : refusals[code][0],
  );
  // Any request may get 400 for an invalid field, whose code is not in the list.
  if (!byStatus.has(400)) byStatus.set(400, []);
  if (isMessages) byStatus.set(overloaded, []);
  const describe = (description: string): JsonRecord => ({ ...refOf('responses', name), description });
  const words = new Map([
    [400, 'a field of the request is invalid; `param` names it'],
    [413, 'bodies above 6 MB may get an answer of AWS that lacks `error`'],
    [overloaded, 'all upstreams are overloaded'],
  ]);
  const described = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, some]) => {
      const named = some.map((code) => `\`${code}\``).join(', ');
      return [status, describe([named, words.get(status)].filter(Boolean).join('; '))] as const;
    });
  return {
    ...Object.fromEntries(described),
    ...(passesRefusals && { '4XX': describe("The upstream's own refusal of the request, with its status") }),
  };
}

/** As the file holds it. */
export const writeDocument = (): string => `${JSON.stringify(buildDocument(), null, 2)}\n`;

if (import.meta.main) writeFileSync(documentFile, writeDocument());
