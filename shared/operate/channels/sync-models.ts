/** Lists the models that an upstream offers, and sets those of a channel to them, with what the list says of them. Never leaves a channel without a model. */
import { readChannel, type ChannelRow } from '../../config/rows/channel-row.ts';
import { matchNames, type UpstreamModelList, type ModelPage } from '../../upstreams/channel-type.ts';
import { quirksOf, findRowRules, upstreamModelOf } from '../../upstreams/called-channel.ts';
import { writeRules, type RuleName, type WrittenRules } from '../../upstreams/quirks.ts';
import { channelSetups, channelTypes } from '../../upstreams/types/channel-types.ts';
import { modelNamePattern } from '../../wire/ids.ts';
import { parseJson } from '../../wire/json.ts';
import { findChannelWarnings } from '../config/row-changes.ts';
import type { OperatorPorts, RowWrite } from '../operator-ports.ts';
import { formatCount, Failure, requireValid } from '../plan.ts';
import { channelRowOf, addModelRules, type ChannelInput } from './edit-channel.ts';
import { readChannelSecret, findChannel } from './list-channels.ts';
import { callUpstream, cleanText } from './test-channel.ts';

export interface SyncInput {
  id: string;
  /** Names of models to add; `*` matches any characters. */
  only?: string[];
  keep?: boolean;
  secretEnv?: string;
}

/** `added`, `removed` and `models` are public names. */
export async function planSync(ports: OperatorPorts, input: SyncInput) {
  const { raw, channel } = await findChannel(ports, input.id);
  const secret = await readChannelSecret(ports, channel, input.secretEnv);
  const { names, rules: listed, ends, warnings } = await listUpstreamModels(ports, channel, secret);
  const { added, removed, models, mapper } = differenceOf(channel, names, input);
  const ending = models.flatMap((model) => {
    const day = ends.get(upstreamModelOf(channel, model));
    return day === undefined ? [] : [`the provider shuts down ${model} on ${day}`];
  });
  const rules = deriveNewRules(channel, models, listed);
  const summary = `The provider lists ${formatCount(names.length, 'model')}: ${added.length} to add, ${removed.length} to remove`;
  const told = Object.entries(rules).map(([model, own]) => `Rules for ${model}: ${JSON.stringify(own)}`);
  const isSame = added.length + removed.length + told.length === 0;
  const isRefused = !isSame && models.length === 0;
  const params = told.length > 0 ? { params: addModelRules(raw, rules) } : {};
  const attributes = { models, ...(mapper && { mapper }), ...params };
  const write: RowWrite = {
    kind: 'update',
    table: 'channels',
    key: { id: raw['id'] },
    attributes,
    unchanged: { models: raw['models'], mapper: raw['mapper'], params: raw['params'] },
    conflict: new Failure(
      'nothing was written: someone else changed the channel in the meantime; re-run the command',
    ),
  };
  return {
    changes: isSame ? [] : [write],
    effect: [isSame ? `${summary}. Nothing to change.` : `${summary}.`, ...told],
    questions: isSame ? [] : [`Save to channel ${input.id}?`],
    ...(isRefused && {
      refusal: 'nothing was written: no models would be left. Check the endpoint and the API key',
    }),
    added,
    removed,
    models,
    listWarnings: [...warnings, ...ending],
    warnings: isSame || isRefused ? [] : await findChannelWarnings(ports, { ...raw, ...attributes }),
  };
}

/** A public name is kept if the upstream lists the model that the name stands for. */
function differenceOf(channel: ChannelRow, listed: string[], { only = ['*'], keep = false }: SyncInput) {
  const { models, mapper } = channel;
  const mapToUpstream = (model: string): string => upstreamModelOf(channel, model);
  const served = new Set([...models, ...models.map(mapToUpstream)]);
  const added = matchNames(only, listed).filter((name) => !served.has(name));
  const removed = keep ? [] : models.filter((model) => !listed.includes(mapToUpstream(model)));
  const mapped = Object.entries(mapper).filter(([model]) => !removed.includes(model));
  return {
    added,
    removed,
    models: [...models.filter((model) => !removed.includes(model)), ...added],
    mapper: mapped.length < Object.keys(mapper).length ? Object.fromEntries(mapped) : undefined,
  };
}

/** Rules in the vendor's list that differ from what is known. The row's own rules win. */
function deriveNewRules(channel: ChannelRow, models: string[], listed: ReadonlyMap<string, WrittenRules>) {
  const rules = models.flatMap((model) => {
    const said = findRowRules(channel, model);
    const known: WrittenRules = { ...writeRules(quirksOf(channel, model)), ...said };
    const own = Object.entries(listed.get(upstreamModelOf(channel, model)) ?? {}).filter(
      ([name, value]) => !(name in said) && JSON.stringify(value) !== JSON.stringify(known[name as RuleName]),
    );
    return own.length > 0 ? [[model, Object.fromEntries(own)] as const] : [];
  });
  return Object.fromEntries(rules);
}

const timeoutMs = 20_000;
const pagesMax = 20;

/**
 * Throws a Failure if the models cannot be listed.
 * @param secret the upstream's key; undefined: the upstream needs none, or the key cannot be read here
 */
async function listUpstreamModels(ports: OperatorPorts, channel: ChannelRow, secret: string | undefined) {
  const { models: list } = channelSetups[channel.type];
  if ('unlisted' in list) throw new Failure(list.unlisted);
  if (channel.secret !== undefined && secret === undefined)
    throw new Failure('cannot list the models without the API key');
  const found = new Set<string>();
  const rules = new Map<string, WrittenRules>();
  const ends = new Map<string, string>();
  let after: string | undefined;
  for (let pages = 0; pages === 0 || after !== undefined; pages += 1) {
    // With an incomplete list, the missing models would be removed from the channel.
    if (pages === pagesMax) throw new Failure(`the list of models has more than ${pagesMax} pages`);
    const page = await readPage(ports, list, { channel, secret, after });
    for (const name of page.models) found.add(name);
    for (const [name, own] of page.rules ?? []) rules.set(name, own);
    for (const [name, day] of page.ends ?? []) ends.set(name, day);
    after = page.after;
  }
  const names = [...found].filter((name) => modelNamePattern.test(name));
  const odd = found.size - names.length;
  const warnings =
    odd > 0 ? [`${odd} names of the upstream have characters that no row may have: they are left out`] : [];
  return { names: names.toSorted(), rules, ends, warnings };
}

async function readPage(
  ports: OperatorPorts,
  list: UpstreamModelList,
  { channel, secret, after }: { channel: ChannelRow; secret: string | undefined; after: string | undefined },
): Promise<ModelPage> {
  const url = list.address(channel, after);
  const { credentials } = channelTypes[channel.type];
  const keyHeaders = list.headers ?? ((value: string) => credentials(value, channel));
  const headers = secret === undefined ? {} : keyHeaders(secret);
  const request = { method: 'GET', url, headers, body: '', connectTimeoutMs: timeoutMs } as const;
  const answer = await callUpstream(ports, request, { secret, timeoutMs });
  const page = answer.ok ? list.read(parseJson(answer.body)) : undefined;
  if (page) return page;
  const said = cleanText(answer.body, secret) || 'empty body';
  throw new Failure(
    `GET ${url.split('?')[0]} did not return a list of models (status ${answer.status}): ${said}`,
  );
}

/**
 * The models that an upstream offers, for a channel that is not written yet.
 * Returns no names, and a warning with the reason, if the models cannot be listed.
 * @param secret the upstream's key; undefined: the upstream needs none, or the key cannot be read here
 */
export async function listOfferedModels(
  ports: OperatorPorts,
  input: Omit<ChannelInput, 'models'>,
  secret: string | undefined,
) {
  const { row } = requireValid(readChannel(channelRowOf({ ...input, models: [] }), ports.target));
  try {
    return await listUpstreamModels(ports, row, secret);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { names: [], rules: new Map<string, WrittenRules>(), warnings: [error.message] };
  }
}
