/** Describes each route for docs/openapi.json, and names its schemas. */
import * as z from 'zod/mini';
import { EmbeddingsRequest } from '../../shared/endpoints/embeddings/embeddings-endpoint.ts';
import { AnsweredRequest, CountedRequest } from '../../shared/endpoints/messages/request.ts';
import { ResponsesRequest, StoredInputRequest } from '../../shared/endpoints/responses/request.ts';
import type { RefusalCode } from '../../shared/relay/http/refusal.ts';
import { ChatRequest } from '../../shared/wire/canonical-call.ts';
import * as api from '../../shared/wire/public-api.ts';
import { deletedResponse } from '../support/stored-schemas.ts';
import { messagePart } from '../support/wire-schemas.ts';
import * as answers from './answers.ts';

const text = z.string();
const flag = z.boolean();
const count = z.int().check(z.gte(0));
const explain = <Schema extends z.ZodMiniType>(schema: Schema, words: string): Schema =>
  schema.check(z.describe(words));

const open = z.looseObject({});
const optional = <Schema extends z.ZodMiniType>(schema: Schema) => z.optional(z.nullable(schema));

/** Fields that the relay reads without a schema: it ignores values of another type, or refuses them with a message of its own. */
const responsesFields = {
  store: optional(explain(flag, 'Only for keys that may store')),
  background: optional(explain(flag, 'Needs `store`')),
  background_options: optional(z.looseObject({ completion_window: optional(text) })),
  metadata: optional(open),
  user: optional(text),
  safety_identifier: optional(text),
  prompt_cache_key: optional(text),
  service_tier: optional(text),
  stream_options: optional(open),
  max_tool_calls: optional(count),
  truncation: optional(text),
};

/** An absent or null field takes the value of the calling key. */
const keyFields = z.partial(
  z.pick(api.ManagedKey, {
    models: true,
    budget: true,
    rpm: true,
    max_concurrency: true,
    expires_at: true,
    store: true,
  }),
).shape;

const yuan = z.number();
const embeddingInput = z.union([
  text.check(z.minLength(1)),
  z.array(text.check(z.minLength(1))).check(z.minLength(1)),
  z.array(count).check(z.minLength(1)),
  z.array(z.array(count).check(z.minLength(1))).check(z.minLength(1)),
]);

/** Bodies of requests. The relay passes fields that are not listed to upstreams of the same form. */
export const requestSchemas = {
  ChatRequest,
  ResponsesRequest: z.looseObject({ ...ResponsesRequest.shape, ...responsesFields }),
  ResponsesInput: z.looseObject({ ...StoredInputRequest.shape, ...responsesFields }),
  MessagesRequest: AnsweredRequest,
  MessagesInput: CountedRequest,
  EmbeddingsRequest: z.looseObject({ ...EmbeddingsRequest.shape, input: embeddingInput }),
  NewKey: z.strictObject({ ...keyFields, name: text }),
  KeyChange: z.strictObject({ ...keyFields, name: z.optional(text) }),
  KeyRotation: z.strictObject({
    grace_hours: z.optional(explain(z.number().check(z.gte(0), z.lte(168)), 'Until the old key ends')),
  }),
  TopUp: z.union([
    z.strictObject({
      amount: explain(yuan, 'Yuan, with 2 decimals at most'),
      auto: z.optional(z.strictObject({ below: yuan, monthly_limit: yuan })),
    }),
    z.strictObject({ auto: explain(z.null(), 'Turns automatic top-ups off') }),
    z.strictObject({ plan: explain(z.number(), 'A level for sale: one month of it') }),
  ]),
  Code: z.strictObject({ code: text }),
  StripeEvent: open,
};

export const answerSchemas = {
  ChatCompletion: answers.completion,
  ChatChunk: answers.chunk,
  OutputItem: answers.item,
  MessagePart: messagePart,
  Response: answers.response,
  ResponseEvent: answers.responseEvent,
  DeletedResponse: deletedResponse,
  InputItems: answers.inputItems,
  Compaction: answers.compaction,
  ResponsesCount: answers.responsesCount,
  Message: answers.message,
  MessagesCount: answers.messagesCount,
  Embeddings: answers.embeddings,
  ModelList: api.ModelList,
  MessagesModelList: api.MessagesModelList,
  Model: api.ModelEntry,
  MessagesModel: api.MessagesModel,
  Charges: z.array(api.ChargeEntry),
  Plans: z.array(api.PlanEntry),
  Account: api.AccountBody,
  UsageList: api.UsageList,
  UsageSums: api.UsageSums,
  Statement: api.AccountStatement,
  BudgetUse: answers.budgetUse,
  KeyList: api.ManagedKeyList,
  Key: api.ManagedKey,
  CreatedKey: answers.createdKey,
  RotatedKey: answers.rotatedKey,
  DeletedKey: answers.deletedKey,
  TopUps: api.TopUpsBody,
  StartedTopUp: answers.startedTopUp,
  RedeemedCode: api.RedeemedCode,
  Health: answers.health,
  ReceivedEvent: answers.receivedEvent,
  Notice: api.Notice,
};

type AnswerName = keyof typeof answerSchemas | 'MessagesEvent' | 'MessagesError' | 'Error';

export interface Answer {
  /** Of several, the one that the request asks for. */
  json?: readonly AnswerName[];
  /** The schema of the JSON in each event's `data`. */
  events?: AnswerName;
  /** Types of answers without a schema. */
  media?: readonly string[];
}

export interface Operation {
  id: string;
  tag: 'calls' | 'stored responses' | 'lists' | 'account' | 'keys and top-ups' | 'pages' | 'payments';
  summary: string;
  /** The headers that hold the key. */
  key: 'bearer' | 'either' | 'none';
  query?: Record<string, z.ZodMiniType>;
  headers?: readonly string[];
  body?: keyof typeof requestSchemas;
  answers: Readonly<Record<number, Answer>>;
  /** The form of its errors. Default: OpenAI's. */
  form?: 'messages' | 'by headers';
  refusals: readonly RefusalCode[];
  /** An upstream's refusal reaches the client with the upstream's status and code. */
  passesRefusals?: boolean;
}

const always = ['unavailable', 'internal', 'origin_denied'] as const;
const keyed = [...always, 'invalid_api_key'] as const;
const body = [
  'unsupported_content_encoding',
  'request_too_large',
  'invalid_encoding',
  'empty_body',
  'invalid_json',
  'json_too_deep',
  'json_too_wide',
] as const;
const call = [
  ...keyed,
  ...body,
  'relay_closed',
  'model_not_allowed',
  'official_not_allowed',
  'customer_refused',
  'relay_loop',
  'too_much_work',
  'model_not_found',
  'insufficient_quota',
  'rate_limit_exceeded',
  'balance_reserved',
  'upstream_unavailable',
  'upstream_timeout',
] as const;
const once = ['request_in_progress', 'request_already_completed', 'idempotency_key_reused'] as const;
const conversation = ['response_not_found', 'previous_response_not_found'] as const;
const stored = [...keyed, 'response_not_found', 'rate_limit_exceeded', 'too_much_work'] as const;
const managing = [...keyed, 'key_may_not_manage'] as const;
const writing = [...managing, 'request_too_large', 'invalid_json', 'rate_limit_exceeded'] as const;
const keyWrites = [...writing, 'key_exceeds_own', 'key_changed'] as const;
const ownedKey = ['key_not_found', 'key_not_yours_to_change'] as const;

const callHeaders = ['Idempotency-Key', 'x-relay-tags'];
const messagesHeaders = ['anthropic-version', 'anthropic-beta', ...callHeaders];
const listHeaders = ['anthropic-version', 'x-api-key'];

const pageLimit = (most: number) =>
  z.optional(explain(z.int().check(z.gte(1), z.lte(most)), 'Entries of a page; default 20'));
const include = z.optional(explain(z.array(text), 'Such as `reasoning.encrypted_content`'));

const counting = { tag: 'calls', refusals: call, passesRefusals: true } as const;
const calling = { tag: 'calls', refusals: [...call, ...once], passesRefusals: true } as const;
const messages = { key: 'either', form: 'messages' } as const;
const bearer = { key: 'bearer' } as const;
const listed = { tag: 'lists', key: 'none', refusals: always } as const;
const page = { tag: 'pages', key: 'none', refusals: [...always, 'not_found'] } as const;
const account = { tag: 'account', key: 'bearer', refusals: keyed } as const;
const manages = { tag: 'keys and top-ups', key: 'bearer' } as const;
const ofStored = { tag: 'stored responses', key: 'bearer', refusals: stored } as const;

/** By method and path. A test compares them with the routes that are served. */
export const operations: Readonly<Record<string, Operation>> = {
  'POST /v1/chat/completions': {
    ...calling,
    ...bearer,
    id: 'createChatCompletion',
    summary: 'Answer a conversation. With `stream: true` the answer is chunks, then `[DONE]`',
    headers: callHeaders,
    body: 'ChatRequest',
    answers: { 200: { json: ['ChatCompletion', 'Error'], events: 'ChatChunk' } },
  },
  'POST /v1/responses': {
    ...calling,
    ...bearer,
    id: 'createResponse',
    summary: 'Answer the items of a conversation. With `stream: true` the answer is events',
    headers: callHeaders,
    body: 'ResponsesRequest',
    answers: { 200: { json: ['Response', 'Error'], events: 'ResponseEvent' } },
    refusals: [...calling.refusals, ...conversation],
  },
  'POST /v1/responses/input_tokens': {
    ...counting,
    ...bearer,
    id: 'countResponseInput',
    summary: 'Count the tokens of an input, free of charge',
    body: 'ResponsesInput',
    answers: { 200: { json: ['ResponsesCount'] } },
    refusals: [...counting.refusals, ...conversation],
  },
  'POST /v1/responses/compact': {
    ...calling,
    ...bearer,
    id: 'compactResponse',
    summary: 'Summarize a conversation into one item, with which it can continue',
    headers: callHeaders,
    body: 'ResponsesInput',
    answers: { 200: { json: ['Compaction', 'Error'] } },
    refusals: [...calling.refusals, ...conversation],
  },
  'GET /v1/responses/{id}': {
    ...ofStored,
    id: 'getResponse',
    summary: 'Read a stored response, or with `stream=true` the events of a background response',
    query: {
      stream: z.optional(flag),
      starting_after: z.optional(explain(count, 'The number of the last event that was seen')),
      include,
    },
    answers: { 200: { json: ['Response'], events: 'ResponseEvent' } },
    refusals: [...stored, 'websocket_not_offered'],
  },
  'DELETE /v1/responses/{id}': {
    ...ofStored,
    id: 'deleteResponse',
    summary: 'Delete a stored response',
    answers: { 200: { json: ['DeletedResponse'] } },
  },
  'GET /v1/responses/{id}/input_items': {
    ...ofStored,
    id: 'listInputItems',
    summary: 'List the input items of a stored response',
    query: {
      limit: pageLimit(100),
      order: z.optional(z.enum(['asc', 'desc'])),
      after: z.optional(explain(text, 'The id of the last item of the previous page')),
      include,
    },
    answers: { 200: { json: ['InputItems'] } },
  },
  'POST /v1/responses/{id}/cancel': {
    ...ofStored,
    id: 'cancelResponse',
    summary: 'Cancel a background response',
    answers: { 200: { json: ['Response'] } },
  },
  'POST /v1/messages': {
    ...calling,
    ...messages,
    id: 'createMessage',
    summary: 'Answer a conversation in the form of Messages. With `stream: true` the answer is events',
    headers: messagesHeaders,
    body: 'MessagesRequest',
    answers: { 200: { json: ['Message', 'MessagesError'], events: 'MessagesEvent' } },
    refusals: [...calling.refusals, 'thread_not_found'],
  },
  'POST /v1/messages/count_tokens': {
    ...counting,
    ...messages,
    id: 'countMessageTokens',
    summary: 'Count the tokens of a conversation, free of charge',
    headers: ['anthropic-version', 'anthropic-beta', 'x-relay-tags'],
    body: 'MessagesInput',
    answers: { 200: { json: ['MessagesCount'] } },
    refusals: [...counting.refusals, 'thread_not_found'],
  },
  'POST /v1/embeddings': {
    ...calling,
    ...bearer,
    id: 'createEmbeddings',
    summary: 'Embed texts or tokens',
    headers: callHeaders,
    body: 'EmbeddingsRequest',
    answers: { 200: { json: ['Embeddings', 'Error'] } },
  },
  'GET /v1/models': {
    ...listed,
    id: 'listModels',
    summary:
      'List models. Requests with a header of Messages clients get the list in the Messages form, in pages',
    headers: listHeaders,
    query: {
      limit: pageLimit(1000),
      after_id: z.optional(text),
      before_id: z.optional(text),
      client_version: z.optional(text),
    },
    answers: { 200: { json: ['ModelList', 'MessagesModelList'] } },
    form: 'by headers',
  },
  'GET /v1/models/{id}': {
    ...listed,
    id: 'getModel',
    summary: 'Describe a model. Its id may contain slashes',
    headers: listHeaders,
    answers: { 200: { json: ['Model', 'MessagesModel'] } },
    form: 'by headers',
    refusals: [...always, 'model_not_found'],
  },
  'GET /v1/charge': {
    ...listed,
    id: 'listCharges',
    summary: 'List the prices in force',
    answers: { 200: { json: ['Charges'] } },
  },
  'GET /v1/plans': {
    ...listed,
    id: 'listPlans',
    summary: 'List the plans',
    answers: { 200: { json: ['Plans'] } },
  },
  'GET /v1/openapi.json': {
    ...listed,
    id: 'getDocument',
    summary: 'This document, with a strong `etag`',
    headers: ['If-None-Match'],
    answers: { 200: { media: ['application/json'] }, 304: {} },
  },
  'GET /health': {
    ...listed,
    id: 'getHealth',
    summary: 'Version and configuration of the relay',
    answers: { 200: { json: ['Health'] } },
  },
  'GET /v1/account': {
    ...account,
    id: 'getAccount',
    summary: 'Balance, plan, limits, own prices and recent errors of the account',
    query: {
      days: z.optional(
        explain(
          z.int().check(z.gte(1), z.lte(31)),
          'Adds the usage of this number of UTC days, including today',
        ),
      ),
    },
    answers: { 200: { json: ['Account'] } },
  },
  'GET /v1/account/usage': {
    ...account,
    id: 'listUsage',
    summary: 'List calls and top-ups, newest first, or sums of them',
    query: {
      limit: pageLimit(100),
      cursor: z.optional(explain(text, 'The `next_cursor` of the previous page')),
      tag: z.optional(explain(text, '`name=value`')),
      end_user: z.optional(text),
      by: z.optional(explain(text, '`end_user` or `tag:<name>`: sums instead of entries')),
    },
    answers: { 200: { json: ['UsageList', 'UsageSums'] } },
  },
  'GET /v1/account/statement': {
    ...account,
    id: 'getStatement',
    summary: "The account's month from opening to closing balance",
    query: { month: explain(text, 'A UTC month that has started, such as 2026-10') },
    answers: { 200: { json: ['Statement'] } },
  },
  'GET /api/oauth/usage': {
    ...account,
    key: 'either',
    id: 'getBudgetUse',
    summary: "The use of the key's budget, as Claude Code reads it",
    answers: { 200: { json: ['BudgetUse'] } },
  },
  'GET /v1/account/keys': {
    ...manages,
    id: 'listKeys',
    summary: 'List the keys that customers created',
    answers: { 200: { json: ['KeyList'] } },
    refusals: managing,
  },
  'POST /v1/account/keys': {
    ...manages,
    id: 'createKey',
    summary: 'Create a key. Only this answer shows it',
    body: 'NewKey',
    answers: { 201: { json: ['CreatedKey'] } },
    refusals: [...keyWrites, 'too_many_keys'],
  },
  'POST /v1/account/keys/{id}': {
    ...manages,
    id: 'changeKey',
    summary: 'Change a key. A field set to null takes the value of the calling key',
    body: 'KeyChange',
    answers: { 200: { json: ['Key'] } },
    refusals: [...keyWrites, ...ownedKey],
  },
  'DELETE /v1/account/keys/{id}': {
    ...manages,
    id: 'revokeKey',
    summary: 'Revoke a key',
    answers: { 200: { json: ['DeletedKey'] } },
    refusals: [...writing, ...ownedKey],
  },
  'POST /v1/account/keys/{id}/rotate': {
    ...manages,
    id: 'rotateKey',
    summary: 'Replace a key by a new one, after a time in which both work',
    body: 'KeyRotation',
    answers: { 201: { json: ['RotatedKey'] } },
    refusals: [...keyWrites, ...ownedKey, 'too_many_keys'],
  },
  'GET /v1/account/top-ups': {
    ...manages,
    id: 'getTopUps',
    summary: 'How the account can be topped up',
    answers: { 200: { json: ['TopUps'] } },
    refusals: managing,
  },
  'POST /v1/account/top-ups': {
    ...manages,
    id: 'startTopUp',
    summary: 'Start a payment, change automatic top-ups, or buy a plan',
    body: 'TopUp',
    answers: { 200: { json: ['StartedTopUp'] } },
    refusals: [...writing, 'top_up_not_offered', 'top_up_failed'],
  },
  'POST /v1/account/codes': {
    ...manages,
    id: 'redeemCode',
    summary: 'Redeem a code. A repeat by the same account gets the first answer',
    body: 'Code',
    answers: { 200: { json: ['RedeemedCode'] } },
    refusals: [
      ...keyed,
      'request_too_large',
      'invalid_json',
      'rate_limit_exceeded',
      'top_up_not_offered',
      'code_not_found',
      'code_redeemed',
      'code_revoked',
      'code_expired',
    ],
  },
  'GET /': {
    ...page,
    id: 'getModelsPage',
    summary: 'The page of models and prices, as HTML or text',
    query: { model: z.optional(text), lang: z.optional(z.enum(['en', 'zh'])) },
    answers: {
      200: { media: ['text/html', 'text/plain'] },
      404: { json: ['Error'], media: ['text/html'] },
    },
    refusals: [...page.refusals, 'model_not_found'],
  },
  'GET /account': {
    ...page,
    id: 'getAccountPage',
    summary: "The customers' page, for browsers",
    answers: { 200: { media: ['text/html'] } },
  },
  'GET /assets/{name}': {
    ...page,
    id: 'getAsset',
    summary: 'The script of the page of models',
    answers: { 200: { media: ['text/javascript'] } },
  },
  'POST /hooks/payments/stripe': {
    id: 'receiveStripeEvent',
    tag: 'payments',
    key: 'none',
    summary: 'For Stripe only: signed events about payments. 404 without the setting `payments`',
    headers: ['stripe-signature'],
    body: 'StripeEvent',
    answers: { 200: { json: ['ReceivedEvent'] } },
    refusals: [...always, 'not_found', 'request_too_large', 'invalid_json'],
  },
};
