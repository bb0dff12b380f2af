/** Sets the models of a channel to those that its upstream lists. Never leaves a channel without a model. */
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { namesLike } from '../../upstreams/model-listing.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { channelWarnings } from '../config/planned-warnings.ts';
import { channelSecret, findChannel } from './find-channel.ts';
import { listUpstreamModels } from './upstream-models.ts';

export interface SyncInput {
  id: string;
  /** Names of models to add; `*` matches any characters. */
  only?: string[];
  /** Remove no models. */
  keep?: boolean;
  /** See `channelSecret`. */
  secretEnv?: string;
}

export interface SyncPlan extends Plan<RowWrite> {
  /** Public names, as in `removed` and `models`. */
  added: string[];
  removed: string[];
  models: string[];
  /** Warnings about the upstream's list. */
  listWarnings: string[];
  /** The relay's warnings about the updated row. */
  warnings: string[];
}

export async function planSync(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'secrets' | 'tables' | 'target' | 'upstreams'>,
  input: SyncInput,
): Promise<SyncPlan> {
  const { raw, channel } = await findChannel(ports, input.id);
  const secret = await channelSecret(ports, channel, input.secretEnv);
  const { names, warnings: listWarnings } = await listUpstreamModels(ports, channel, secret);
  const { added, removed, models, mapper } = differenceOf(channel, names, input);
  const summary = `the upstream lists ${names.length} models: ${added.length} to add, ${removed.length} to remove`;
  const isSame = added.length + removed.length === 0;
  const isRefused = !isSame && models.length === 0;
  const attributes = { models, ...(mapper && { mapper }) };
  const write: RowWrite = {
    kind: 'update',
    table: 'channels',
    key: { id: raw['id'] },
    attributes,
    unchanged: { models: raw['models'], mapper: raw['mapper'] },
    conflict: new Failure('nothing was written: somebody changed the row meanwhile; repeat the command'),
  };
  return {
    changes: isSame ? [] : [write],
    effect: [isSame ? `${summary}; nothing to write.` : `${summary}.`],
    questions: isSame ? [] : [`Write these models to the channel ${input.id}?`],
    ...(isRefused && {
      refusal: 'nothing was written: no model would be left; is this the right upstream and key?',
    }),
    added,
    removed,
    models,
    listWarnings,
    warnings: isSame || isRefused ? [] : await channelWarnings(ports, { ...raw, ...attributes }),
  };
}

/** A public name is kept if the upstream lists the model that the name stands for. */
function differenceOf(
  channel: ChannelRow,
  listed: string[],
  { only = ['*'], keep = false }: SyncInput,
): Pick<SyncPlan, 'added' | 'removed' | 'models'> & { mapper: ChannelRow['mapper'] | undefined } {
  const { models, mapper } = channel;
  const upstreamName = (model: string): string => upstreamModel(channel, model);
  const served = new Set([...models, ...models.map(upstreamName)]);
  const added = namesLike(only, listed).filter((name) => !served.has(name));
  const removed = keep ? [] : models.filter((model) => !listed.includes(upstreamName(model)));
  const mapped = Object.entries(mapper).filter(([model]) => !removed.includes(model));
  return {
    added,
    removed,
    models: [...models.filter((model) => !removed.includes(model)), ...added],
    mapper: mapped.length < Object.keys(mapper).length ? Object.fromEntries(mapped) : undefined,
  };
}
