/**
 * Amazon Bedrock's runtime, in all dialects. The function's own role signs requests; there is no secret.
 */
import type { ChannelSetup, ChannelAttributes, ChannelType } from '../channel-type.ts';
import { isLoopbackAddress } from '../endpoint-rules.ts';

/** The geography of an inference profile may come first: `us.anthropic.claude-...`. */
const claude = /^(?:[a-z-]{2,6}\.)?anthropic\./;
/** The open models `gpt-oss` have no Responses on this endpoint. */
const gpt = /^(?:[a-z-]{2,6}\.)?openai\.(?!gpt-oss)/;

export const bedrock: ChannelType<'region'> = {
  dialect: (model) => (claude.test(model) ? 'messages' : gpt.test(model) ? 'responses' : 'chat'),
  address: ({ endpoint }, { dialect, path }) =>
    `${endpoint}/${dialect === 'messages' ? 'anthropic' : 'openai'}/v1${path}`,
  credentials: () => ({}),
  accept: 'text/event-stream, application/vnd.amazon.eventstream, application/json',
  awsScope: ({ region = '' }) => ({ service: 'bedrock', region }),
  limitField: () => 'max_completion_tokens',
  // Bedrock refuses `max_tokens`, and "detailed" and "concise" summaries [coder/coder 29229, 2026-09-11].
  quirks: () => ({ limitField: 'max_completion_tokens', summaryKind: 'auto', takesDerivedFields: true }),
};

export const bedrockSetup: ChannelSetup<'region'> = {
  attributes: {
    region: {
      about: 'AWS region of the models',
      wanted: 'an AWS region such as "us-east-1"',
      pattern: /^[a-z]{2,3}(-[a-z]+)+-\d{1,2}$/,
      named: 'a region',
    },
  },
  defaultEndpoint: ({ region }) => region && `https://bedrock-runtime.${region}.amazonaws.com`,
  problems: (row, rules) =>
    [
      row.region === undefined &&
        'region: missing, expected the AWS region of the models, such as "us-east-1"',
      row.secret !== undefined &&
        "secret: found one, but the type bedrock signs with the function's own role; take it out (a Bedrock API key works with the type openai)",
      row.endpoint !== '' && findEndpointProblem(row, rules),
    ].filter((problem) => typeof problem === 'string'),
  models: { unlisted: "Bedrock is called with the functions' own role, which this tool does not have" },
  questions: [{ attribute: 'region', question: 'AWS region of the models' }],
};

function findEndpointProblem(
  row: ChannelAttributes<'region'>,
  rules: { local: boolean },
): string | undefined {
  if (!isBedrockHost(row, rules))
    return "endpoint: found another host than Bedrock's in the region, expected no endpoint, since requests are signed";
  const path = URL.parse(row.endpoint)?.pathname.replace(/\/+$/, '') ?? '';
  return path === ''
    ? undefined
    : `endpoint: found ${path} at the end, expected the host alone (or no endpoint): /openai/v1 or /anthropic/v1 is added by the model's dialect`;
}

/** Signed requests carry a session token, so they may go only to AWS. */
function isBedrockHost(
  { endpoint, region }: ChannelAttributes<'region'>,
  { local }: { local: boolean },
): boolean {
  const host = URL.parse(endpoint)?.hostname ?? '';
  if (local && (host === 'localhost' || isLoopbackAddress(host))) return true;
  const [name, hostRegion, ...domain] = host.split('.');
  return (
    (name === 'bedrock-runtime' || name === 'bedrock-runtime-fips') &&
    hostRegion === region &&
    ['amazonaws.com', 'amazonaws.com.cn'].includes(domain.join('.'))
  );
}
