/**
 * Amazon Bedrock's OpenAI-compatible endpoint. The function's own role signs requests; there is no secret.
 */
import type { ChannelSetup } from '../channel-setup.ts';
import type { ChannelAttributes, ChannelType } from '../channel-type.ts';
import { isLoopbackAddress } from '../public-address.ts';

export const bedrock: ChannelType<'region'> = {
  credentials: () => ({}),
  awsScope: ({ region = '' }) => ({ service: 'bedrock', region }),
  limitField: () => 'max_completion_tokens',
  /** Bedrock refuses `max_tokens`. */
  quirks: () => ({ limitFields: ['max_completion_tokens'] }),
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
  ownEndpoint: ({ region }) => region && `https://bedrock-runtime.${region}.amazonaws.com/openai/v1`,
  problems: (row, rules) =>
    [
      row.region === undefined &&
        'region: found nothing, wanted the AWS region of the models, such as "us-east-1"',
      row.secret !== undefined &&
        "secret: found one, but the type bedrock signs with the function's own role; take it out (a Bedrock API key works with the type openai)",
      row.endpoint !== '' &&
        !isBedrockHost(row, rules) &&
        "endpoint: found another host than Bedrock's in the region, wanted no endpoint, since requests are signed",
    ].filter((problem) => problem !== false),
  models: { unlisted: "Bedrock is called with the functions' own role, which this tool does not have" },
  questions: [{ attribute: 'region', question: 'AWS region of the models' }],
};

/** Signed requests carry a session token, so they may go only to AWS. */
function isBedrockHost(
  { endpoint, region }: ChannelAttributes<'region'>,
  { local }: { local: boolean },
): boolean {
  const host = URL.parse(endpoint)?.hostname ?? '';
  if (local && (host === 'localhost' || isLoopbackAddress(host))) return true;
  const [name, place, ...domain] = host.split('.');
  return (
    (name === 'bedrock-runtime' || name === 'bedrock-runtime-fips') &&
    place === region &&
    ['amazonaws.com', 'amazonaws.com.cn'].includes(domain.join('.'))
  );
}
