/**
 * Amazon Bedrock: Claude's Messages below `/anthropic/v1`, OpenAI's forms below `/openai/v1`, all signed with the
 * local stack's credentials. Claude's models are inference profiles (`us.anthropic.claude-opus-5-5-v1:0`); with
 * `accept: application/vnd.amazon.eventstream` streams are AWS event streams.
 */
import { createRequire } from 'node:module';
import type * as EventStreams from '@smithy/core/event-streams';
import { messagesRefusal } from './anthropic.ts';
import { bedrockBetas, type Gate } from './messages/betas.ts';
import { claudeModels, type ClaudeModel } from './messages/request.ts';
import { createGateRules, messagesRules, serveMessages, type MessagesServer } from './messages/serve.ts';
import { createOpenaiEndpoints } from './openai.ts';
import { PrefixMemory } from './script.ts';
import { jsonText } from '../../../shared/wire/json.ts';
import {
  replyWithJson,
  parseObject,
  refuseByRule,
  type VendorRefusal,
  type Rules,
  type Vendor,
  type VendorReply,
  type VendorRequest,
} from './vendor.ts';
import { createSigner } from '../../../shared/adapters/aws/aws-signature.ts';
import { localAccess } from '../host/local-options.ts';

export function createBedrockDouble(now: () => number = Date.now): Vendor {
  const openai = createOpenaiEndpoints(/^(openai\.gpt-5\.6|qwen\.qwen3-coder)(-[\w.:]+)?$/);
  const signing = createSignatureRules(now);
  const memory = new PrefixMemory();
  const claude = createMessagesServer(memory);
  return {
    name: 'bedrock',
    base: '',
    models: [
      ...Object.keys(claudeModels).map((name) => `us.anthropic.${name}-v1:0`),
      'openai.gpt-5.6',
      'qwen.qwen3-coder-480b',
    ],
    rules: Object.keys({ ...signing, ...modelRules, ...createGateRules(claude), ...messagesRules }),
    async serve(request) {
      const signed = readSignature(request);
      const called = { ...signed, model: jsonText(parseObject(request.text)?.['model']) };
      const refused =
        refuseByRule(signing, signed, replyWithException) ??
        refuseByRule(modelRules, called, replyWithException);
      if (refused) return refused;
      if (request.path.startsWith('/openai/'))
        return openai.serve({ ...request, path: request.path.slice('/openai'.length) }, signed.accessKey);
      if (`${request.method} ${request.path}` !== 'POST /anthropic/v1/messages')
        return replyWithException({
          status: 404,
          message: 'UnknownOperationException',
          type: 'UnknownOperationException',
        });
      return serveMessages(request, { ...claude, ...framingOf(request) });
    },
  };
}

const replyWithException = ({ status, message, type = 'ValidationException' }: VendorRefusal): VendorReply =>
  replyWithJson(status, { message }, { 'x-amzn-errortype': type });

const eventStream = 'application/vnd.amazon.eventstream';

const framingOf = ({ headers }: VendorRequest): Pick<MessagesServer, 'frame'> =>
  headers['accept']?.includes(eventStream)
    ? {
        frame: {
          contentType: eventStream,
          frame: encodeChunkFrame,
          error: encodeExceptionFrame(
            'internalServerException',
            'The system encountered an unexpected error during processing. Try your request again.',
          ),
        },
      }
    : {};

const profile = /^(us|eu|apac|jp|au|global)\.anthropic\.(claude-[a-z]+-\d-\d)(-v\d+(:\d+)?)?$/;

function modelOf(name: string): ClaudeModel | undefined {
  const [, , model = ''] = profile.exec(name) ?? [];
  return claudeModels[model];
}

interface CalledModel extends SignedRequest {
  model: string;
}

const modelRules: Rules<CalledModel> = {
  // Claude is called by an inference profile, not by its own id
  // [docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html].
  profile: ({ model }) =>
    model.startsWith('anthropic.') &&
    `Invocation of model ID ${model} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`,
  // A profile is called in the regions of its geography
  // [docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html].
  'profile-region'({ model, region }) {
    const [, geography] = profile.exec(model) ?? [];
    const regions: Record<string, string> = {
      us: 'us-',
      eu: 'eu-',
      apac: 'ap-',
      jp: 'ap-northeast-',
      au: 'ap-southeast-',
    };
    const wanted = regions[geography ?? ''];
    return wanted !== undefined && !region.startsWith(wanted) && 'The provided model identifier is invalid.';
  },
};

const versionInBody = 'anthropic_version';

const createMessagesServer = (memory: PrefixMemory): MessagesServer => ({
  gate: {
    // The version is in the header, or as bedrock-2023-05-31 in the body
    // [docs.aws.amazon.com/bedrock/latest/userguide/inference-messages-api.html].
    version: ({ headers, value }) =>
      headers['anthropic-version'] === undefined &&
      value?.[versionInBody] !== 'bedrock-2023-05-31' &&
      `${versionInBody}: Field required`,
  },
  isNewer: ({ headers }: Gate) => headers['anthropic-version'] === '2026-10-21',
  ownFields: [versionInBody],
  modelOf,
  // Thinking belongs to the AWS account: the access key stands for it.
  account: ({ headers }) => /Credential=([^/]+)/.exec(headers['authorization'] ?? '')?.[1] ?? '',
  refuse: messagesRefusal,
  memory,
  betas: bedrockBetas,
});

/** A request with what its signature says and what it should be. */
interface SignedRequest {
  accessKey: string;
  region: string;
  service: string;
  /** The header as the vendor computes it. */
  expected?: string;
  found?: string;
  signedAt: number;
}

const { credentials } = localAccess;

function readSignature(request: VendorRequest): SignedRequest {
  const found = request.headers['authorization'];
  const [, scope = '', names = ''] =
    /^AWS4-HMAC-SHA256 Credential=(\S+), SignedHeaders=(\S+), /.exec(found ?? '') ?? [];
  const [accessKey = '', , region = '', service = ''] = scope.split('/');
  const signedAt = dateOf(request.headers['x-amz-date'] ?? '');
  const facts = { accessKey, region, service, signedAt, ...(found !== undefined && { found }) };
  if (accessKey === '' || Number.isNaN(signedAt)) return facts;
  const covered = names.split(';').filter((name) => name !== 'host' && !signedByItself.has(name));
  const { authorization } = createSigner(
    service,
    region,
  )({
    method: request.method,
    host: request.headers['host'] ?? '',
    path: request.signedPath ?? request.path,
    headers: Object.fromEntries(covered.map((name) => [name, request.headers[name] ?? ''])),
    body: request.text,
    credentials,
    atMs: signedAt,
  });
  return { ...facts, ...(authorization !== undefined && { expected: authorization }) };
}

const signedByItself = new Set(['x-amz-date', 'x-amz-security-token']);

/** `20261122T000256Z` in milliseconds; NaN for anything else. */
const dateOf = (text: string): number =>
  Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

const minutes = 60_000;

/** The refusal's type is the exception's name. */
const refuseDenied = (type: string, message: string): VendorRefusal => ({ status: 403, message, type });

/** In the order in which AWS looks. All of docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html. */
const createSignatureRules = (now: () => number): Rules<SignedRequest> => ({
  // A request is signed.
  signed: ({ expected }) =>
    expected === undefined &&
    refuseDenied('MissingAuthenticationTokenException', 'Missing Authentication Token'),
  // The access key exists.
  'access-key': ({ accessKey }) =>
    accessKey !== credentials.accessKeyId &&
    refuseDenied('UnrecognizedClientException', 'The security token included in the request is invalid.'),
  // The signature is scoped to the service bedrock.
  scope: ({ service }) =>
    service !== 'bedrock' &&
    refuseDenied('InvalidSignatureException', "Credential should be scoped to correct service: 'bedrock'. "),
  // The signature is not older than five minutes.
  fresh: ({ signedAt }) =>
    Math.abs(now() - signedAt) > 5 * minutes &&
    refuseDenied(
      'InvalidSignatureException',
      `Signature expired: ${new Date(signedAt).toISOString()} is now earlier than ${new Date(now() - 5 * minutes).toISOString()}`,
    ),
  // The signature covers the method, path, headers and body that arrived.
  signature: ({ expected, found }) =>
    expected !== found &&
    refuseDenied(
      'InvalidSignatureException',
      'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.',
    ),
});

const require = createRequire(import.meta.url);

function encodeEventStreamMessage(headers: Record<string, string>, payload: string): Uint8Array {
  // Loaded with the first event: loading takes 25 ms, and few calls request event streams.
  const loaded = require('@smithy/core/event-streams') as typeof EventStreams;
  return new loaded.EventStreamCodec(String, (text) => Buffer.from(text)).encode({
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, { type: 'string' as const, value }]),
    ),
    body: Buffer.from(payload),
  });
}

/** One event of the model, as Bedrock wraps it: base64 inside JSON, with padding of random length. */
export const encodeChunkFrame = (event: { type: string }): Uint8Array =>
  encodeEventStreamMessage(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({
      bytes: Buffer.from(JSON.stringify(event)).toString('base64'),
      p: 'abcdefghijkl'.slice(event.type.length % 12),
    }),
  );

const encodeExceptionFrame = (type: string, message: string): Uint8Array =>
  encodeEventStreamMessage(
    { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' },
    JSON.stringify({ message }),
  );
