/** Lists the models that an upstream offers. */
import { parseJson } from '../../wire/json-record.ts';
import { modelNamePattern } from '../../wire/name-patterns.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { channelSetups, channelTypes } from '../../upstreams/types/channel-types.ts';
import type { ModelList, ModelPage } from '../../upstreams/model-listing.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { callUpstream, cleanText } from './upstream-call.ts';

const timeoutMs = 20_000;
const pagesMax = 20;

export interface UpstreamModels {
  /** Sorted. */
  names: string[];
  warnings: string[];
}

type ListPorts = Pick<OperatorPorts, 'clock' | 'upstreams'>;

/**
 * Throws a Failure if the models cannot be listed.
 * @param secret the upstream's key; undefined: the upstream needs none, or the key cannot be read here
 */
export async function listUpstreamModels(
  ports: ListPorts,
  channel: ChannelRow,
  secret: string | undefined,
): Promise<UpstreamModels> {
  const { models: list } = channelSetups[channel.type];
  if ('unlisted' in list) throw new Failure(list.unlisted);
  if (channel.secret !== undefined && secret === undefined)
    throw new Failure('without the key, its models cannot be listed');
  const found = new Set<string>();
  let after: string | undefined;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await readPage(ports, list, { channel, secret, after });
    for (const name of page.models) found.add(name);
    after = page.after;
    if (after === undefined) break;
  }
  const names = [...found].filter((name) => modelNamePattern.test(name));
  const odd = found.size - names.length;
  const warnings =
    odd > 0 ? [`${odd} names of the upstream have characters that no row may have: they are left out`] : [];
  return { names: names.toSorted(), warnings };
}

async function readPage(
  ports: ListPorts,
  list: ModelList,
  { channel, secret, after }: { channel: ChannelRow; secret: string | undefined; after: string | undefined },
): Promise<ModelPage> {
  const url = list.address(channel, after);
  const { credentials } = channelTypes[channel.type];
  const headers = list.headers ?? ((value: string) => credentials(value, channel));
  const request = {
    method: 'GET',
    url,
    headers: secret === undefined ? {} : headers(secret),
    body: '',
    connectTimeoutMs: timeoutMs,
  } as const;
  const answer = await callUpstream(ports, request, { secret, timeoutMs });
  const page = answer.ok ? list.read(parseJson(answer.body)) : undefined;
  if (page) return page;
  const said = cleanText(answer.body, secret) || 'an empty body';
  throw new Failure(`GET ${url.split('?')[0]}: no list of models came back (${answer.status}): ${said}`);
}
