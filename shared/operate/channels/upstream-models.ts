/** Lists the models of an upstream. */
import * as z from 'zod/mini';
import { modelName } from '../../wire/attribute-schemas.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { channelTypes } from '../../upstreams/channel-type.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { callUpstream, cleanText } from './upstream-call.ts';

const timeoutMs = 20_000;
const pagesMax = 20;

const Model = z.object({ id: z.string() });
/** OpenAI's list, Anthropic's pages of it, or the bare list that some others send. */
const List = z.union([
  z.object({
    data: z.array(Model),
    has_more: z.optional(z.nullable(z.boolean())),
    last_id: z.optional(z.nullable(z.string())),
  }),
  z.pipe(
    z.array(Model),
    z.transform((data: z.infer<typeof Model>[]) => ({ data })),
  ),
]);

/** Why the models of this type cannot be listed; undefined: they can. */
export function whyUnlisted({ type }: Pick<ChannelRow, 'type'>): string | undefined {
  if (type === 'azure') return 'Azure lists models, but its channels serve deployments';
  if (type === 'bedrock')
    return "Bedrock is called with the functions' own role, which this tool does not have";
  return undefined;
}

export interface UpstreamModels {
  /** By the alphabet. */
  names: string[];
  /** How many names are left out, since they have characters that no row may have. */
  odd: number;
}

type ListPorts = Pick<OperatorPorts, 'clock' | 'upstreams'>;

/** Throws a Failure when there is no such list. */
export async function listUpstreamModels(
  ports: ListPorts,
  channel: ChannelRow,
  secret: string | undefined,
): Promise<UpstreamModels> {
  const why = whyUnlisted(channel);
  if (why !== undefined) throw new Failure(why);
  const found = new Set<string>();
  let after: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const list = await readPage(ports, { channel, secret, after });
    // Gemini lists `models/gemini-...`, and takes the short name too.
    for (const { id } of list.data) found.add(channel.type === 'gemini' ? id.replace(/^models\//, '') : id);
    after = 'has_more' in list && list.has_more ? (list.last_id ?? undefined) : undefined;
    if (after === undefined) break;
  }
  const names = [...found].filter((id) => z.safeParse(modelName, id).success);
  return { names: names.toSorted(), odd: found.size - names.length };
}

interface Page {
  channel: ChannelRow;
  secret: string | undefined;
  after: string | undefined;
}

async function readPage(ports: ListPorts, { channel, secret, after }: Page) {
  const query =
    channel.type === 'anthropic'
      ? `?limit=1000${after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`}`
      : '';
  const url = `${channel.endpoint}/models${query}`;
  const request = {
    method: 'GET' as const,
    url,
    headers: headersOf(channel, secret),
    body: '',
    connectTimeoutMs: timeoutMs,
  };
  const answer = await callUpstream(ports, request, { secret, timeoutMs });
  const list = answer.ok ? z.safeParse(List, parseJson(answer.body)) : undefined;
  if (list?.success) return list.data;
  const said = cleanText(answer.body, secret) || 'an empty body';
  throw new Failure(
    `GET ${channel.endpoint}/models: no list of models came back (${answer.status}): ${said}`,
  );
}

/** Anthropic's list is part of its native interface, which knows no bearer token. */
function headersOf(channel: ChannelRow, secret: string | undefined): Record<string, string> {
  if (secret === undefined) return {};
  if (channel.type === 'anthropic') return { 'x-api-key': secret, 'anthropic-version': '2023-06-01' };
  return channelTypes[channel.type].credentials(secret);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The names that were asked for, in the order of the list; `*` stands for anything. */
export function namesLike(wanted: string[], listed: string[]): string[] {
  const patterns = wanted.map((written) => new RegExp(`^${written.split('*').map(escaped).join('.*')}$`));
  return listed.filter((name) => patterns.some((pattern) => pattern.test(name)));
}
