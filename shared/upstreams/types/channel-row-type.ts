/** What rows of each channel type must and may say. How a type is called is told in relay/channel-types. */
import { isLoopbackAddress } from '../public-address.ts';

/** The attributes of a row that depend on its type; an empty `endpoint` stands for none written. */
export interface TypedAttributes {
  endpoint: string;
  secret?: string | string[] | undefined;
  region?: string | undefined;
  api_version?: string | undefined;
}

interface ChannelRowType {
  /** The address of a row that writes none; undefined: it has to write one. */
  ownEndpoint(row: TypedAttributes): string | undefined;
  /** `region: ...` and the like, for what this type needs or cannot use. */
  problems(row: TypedAttributes, rules: { local: boolean }): string[];
}

/** Azure's newer form, which needs no `api_version`. */
export const isAzureV1 = (endpoint: string): boolean => /\/openai\/v1\/*$/.test(endpoint);

const noEndpoint = (): undefined => undefined;

const rowTypes = {
  openai: { ownEndpoint: noEndpoint, problems: noForeignAttributes },
  anthropic: { ownEndpoint: () => 'https://api.anthropic.com/v1', problems: noForeignAttributes },
  gemini: {
    ownEndpoint: () => 'https://generativelanguage.googleapis.com/v1beta/openai',
    problems: noForeignAttributes,
  },
  azure: { ownEndpoint: noEndpoint, problems: azureProblems },
  bedrock: {
    ownEndpoint: ({ region }) => region && `https://bedrock-runtime.${region}.amazonaws.com/openai/v1`,
    problems: bedrockProblems,
  },
} as const satisfies Record<string, ChannelRowType>;

export type ChannelTypeName = keyof typeof rowTypes;
export const channelTypeNames = Object.keys(rowTypes) as ChannelTypeName[];

/** The address that a row is called at, its own or its type's. */
export const endpointOf = (type: ChannelTypeName, row: TypedAttributes): string | undefined =>
  row.endpoint === '' ? rowTypes[type].ownEndpoint(row) : row.endpoint;

export function typeProblems(
  type: ChannelTypeName,
  row: TypedAttributes,
  rules: { local: boolean },
): string[] {
  const problems = rowTypes[type].problems(row, rules);
  if (problems.length > 0 || endpointOf(type, row) !== undefined) return problems;
  return ['endpoint: found nothing, wanted a text'];
}

function noForeignAttributes({ region, api_version }: TypedAttributes): string[] {
  return [
    ...(region === undefined ? [] : ['region: found one, but only the type bedrock has a region']),
    ...(api_version === undefined ? [] : ['api_version: found one, but only the type azure has versions']),
  ];
}

function azureProblems(row: TypedAttributes): string[] {
  const problems = noForeignAttributes({ ...row, api_version: undefined });
  if (row.endpoint !== '' && row.api_version === undefined && !isAzureV1(row.endpoint)) {
    problems.push(
      'api_version: found nothing, wanted one such as "2024-10-21" (or an endpoint that ends in /openai/v1)',
    );
  }
  return problems;
}

function bedrockProblems(row: TypedAttributes, rules: { local: boolean }): string[] {
  const problems = noForeignAttributes({ ...row, region: undefined });
  if (row.region === undefined) {
    problems.push('region: found nothing, wanted the AWS region of the models, such as "us-east-1"');
  }
  if (row.secret !== undefined) {
    problems.push(
      "secret: found one, but the type bedrock signs with the function's own role; take it out (a Bedrock API key works with the type openai)",
    );
  }
  if (row.endpoint !== '' && !isBedrockHost(row, rules)) {
    problems.push(
      "endpoint: found another host than Bedrock's in the region, wanted no endpoint, since requests are signed",
    );
  }
  return problems;
}

/** Signed requests carry a session token: they go nowhere but to AWS. */
function isBedrockHost({ endpoint, region }: TypedAttributes, { local }: { local: boolean }): boolean {
  const host = URL.parse(endpoint)?.hostname ?? '';
  if (local && (host === 'localhost' || isLoopbackAddress(host))) return true;
  const [name, place, ...domain] = host.split('.');
  return (
    (name === 'bedrock-runtime' || name === 'bedrock-runtime-fips') &&
    place === region &&
    ['amazonaws.com', 'amazonaws.com.cn'].includes(domain.join('.'))
  );
}
