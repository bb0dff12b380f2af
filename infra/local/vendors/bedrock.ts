import { messagesRefusal } from './anthropic.ts';
import { readSignature, signatureRules, type SignedRequest } from './aws-signature.ts';
import { chunkFrame, exceptionFrame } from './event-stream.ts';
import { claudeModels, type ClaudeModel } from './messages/models.ts';
import { gateRules, messagesRules, serveMessages, type Gate, type MessagesServer } from './messages/serve.ts';
import { openaiEndpoints } from './openai.ts';
import { jsonReply } from './script/frames.ts';
import { PrefixMemory } from './script/prefix-memory.ts';
import { firstBroken, objectIn, textIn } from './script/vendor.ts';
import type { Refusal, Rule, Vendor, VendorReply, VendorRequest } from './script/vendor.ts';

/**
 * Amazon Bedrock: Claude's Messages below `/anthropic/v1`, OpenAI's forms below `/openai/v1`, all signed with the
 * local stack's credentials. Claude's models are inference profiles (`us.anthropic.claude-opus-5-5-v1:0`); with
 * `accept: application/vnd.amazon.eventstream` streams are AWS event streams.
 */
export function bedrockDouble(now: () => number = Date.now): Vendor {
  const openai = openaiEndpoints(/^(openai\.gpt-5\.6|qwen\.qwen3-coder)(-[\w.:]+)?$/);
  const signing = signatureRules(now);
  const memory = new PrefixMemory();
  const claude = messagesServer(memory);
  return {
    name: 'bedrock',
    base: '',
    models: [
      ...Object.keys(claudeModels).map((name) => `us.anthropic.${name}-v1:0`),
      'openai.gpt-5.6',
      'qwen.qwen3-coder-480b',
    ],
    rules: [...signing, ...modelRules, ...gateRules(claude), ...messagesRules],
    async serve(request) {
      const signed = await readSignature(request);
      const called = { ...signed, model: textIn(objectIn(request.text)?.['model']) };
      const broken = firstBroken(signing, signed) ?? firstBroken(modelRules, called);
      if (broken) return { ...exception(broken.refusal), rule: broken.rule };
      if (request.path.startsWith('/openai/'))
        return openai.serve({ ...request, path: request.path.slice('/openai'.length) }, signed.accessKey);
      if (`${request.method} ${request.path}` !== 'POST /anthropic/v1/messages')
        return exception({
          status: 404,
          message: 'UnknownOperationException',
          type: 'UnknownOperationException',
        });
      return serveMessages(request, { ...claude, ...framingOf(request) });
    },
  };
}

const exception = ({ status, message, type = 'ValidationException' }: Refusal): VendorReply =>
  jsonReply(status, { message }, { 'x-amzn-errortype': type });

const eventStream = 'application/vnd.amazon.eventstream';

const framingOf = ({ headers }: VendorRequest): Pick<MessagesServer, 'frame'> =>
  headers['accept']?.includes(eventStream)
    ? {
        frame: {
          contentType: eventStream,
          frame: chunkFrame,
          error: exceptionFrame(
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

const profiles = 'https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html';

const modelRules: Rule<CalledModel>[] = [
  {
    id: 'profile',
    says: 'Claude is called by an inference profile, not by its own id.',
    source: profiles,
    date: '2026-11-21',
    check: ({ model }) =>
      model.startsWith('anthropic.') && {
        status: 400,
        message: `Invocation of model ID ${model} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`,
      },
  },
  {
    id: 'profile-region',
    says: 'A profile is called in the regions of its geography.',
    source: profiles,
    date: '2026-11-21',
    check({ model, region }) {
      const [, geography] = profile.exec(model) ?? [];
      const regions: Record<string, string> = {
        us: 'us-',
        eu: 'eu-',
        apac: 'ap-',
        jp: 'ap-northeast-',
        au: 'ap-southeast-',
      };
      const wanted = regions[geography ?? ''];
      return (
        wanted !== undefined &&
        !region.startsWith(wanted) && { status: 400, message: 'The provided model identifier is invalid.' }
      );
    },
  },
];

const versionInBody = 'anthropic_version';

const messagesServer = (memory: PrefixMemory): MessagesServer => ({
  gate: [
    {
      id: 'version',
      says: 'The version is in the header, or as bedrock-2023-05-31 in the body.',
      source: 'https://docs.aws.amazon.com/bedrock/latest/userguide/inference-messages-api.html',
      date: '2026-11-21',
      check: ({ headers, value }) =>
        headers['anthropic-version'] === undefined &&
        value?.[versionInBody] !== 'bedrock-2023-05-31' && {
          status: 400,
          message: `${versionInBody}: Field required`,
          type: 'invalid_request_error',
        },
    },
  ],
  isNewer: ({ headers }: Gate) => headers['anthropic-version'] === '2026-10-21',
  ownFields: [versionInBody],
  modelOf,
  // Thinking belongs to the AWS account: the access key stands for it.
  account: ({ headers }) => /Credential=([^/]+)/.exec(headers['authorization'] ?? '')?.[1] ?? '',
  refuse: messagesRefusal,
  memory,
});
