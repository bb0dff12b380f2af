/**
 * Finds what serves a model in the request's configuration. Built once for each model of a snapshot, at the model's
 * first call; must not keep anything of a call, or of names that nobody serves.
 */
import { ruleOf } from '../../billing/price-rule.ts';
import { holdsFor } from '../../config/rows/capabilities.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { hash53 } from '../../wire/fingerprint.ts';
import { refuse } from '../http/refusal.ts';
import type { Candidate } from './candidate.ts';

const neededCapabilities = ['tools', 'images', 'json_schema'] as const;
/** What a call may need and a probe may deny. */
export type NeededCapability = (typeof neededCapabilities)[number];

/** Frozen, with all its lists. */
export interface Serving {
  /** The enabled channels that serve the model, by priority. */
  readonly channels: readonly [ChannelRow, ...ChannelRow[]];
  /** Their candidates, in the same order. */
  readonly candidates: readonly Candidate[];
  /** What a probe denied at least one of the channels. */
  readonly denied: ReadonlySet<NeededCapability>;
}

interface ServedModel extends Serving {
  /** The rules that name the model. */
  readonly charges: readonly ChargeRow[];
}

/** One for each function: what it has built is forgotten with its snapshot. */
export class ServingChannels {
  readonly #bySnapshot = new WeakMap<Snapshot, Map<string, ServedModel>>();

  /** Throws a Refusal when there are none. */
  of(snapshot: Snapshot, model: string, nowMs: number): Serving {
    const served = this.#served(snapshot, model);
    if (!served || (snapshot.settings.unpricedModels === 'refuse' && !ruleOf(served.charges, model, nowMs)))
      throw refuse(
        'model_not_found',
        `The model "${model}" is not available here. GET /v1/models lists those that are.`,
        {
          param: 'model',
        },
      );
    return served;
  }

  #served(snapshot: Snapshot, model: string): ServedModel | undefined {
    let models = this.#bySnapshot.get(snapshot);
    if (!models) this.#bySnapshot.set(snapshot, (models = new Map()));
    const known = models.get(model);
    if (known) return known;
    // Names that nobody serves cost little and leave nothing behind, however many a caller invents.
    const built = snapshot.models.includes(model) ? servedModel(snapshot, model) : undefined;
    if (built) models.set(model, built);
    return built;
  }
}

function servedModel(snapshot: Snapshot, model: string): ServedModel | undefined {
  const serves = ({ models }: { models: readonly string[] }): boolean => models.includes(model);
  const [first, ...rest] = snapshot.channels.filter(serves);
  if (!first) return undefined;
  const channels: Serving['channels'] = [first, ...rest];
  const candidates = channels.flatMap((channel) => candidatesOf(channel, model));
  return Object.freeze({
    channels: Object.freeze(channels),
    candidates: Object.freeze(candidates),
    denied: new Set(
      neededCapabilities.filter((needed) => channels.some((channel) => lacks(channel, model, needed))),
    ),
    charges: Object.freeze(snapshot.charges.filter(serves)),
  });
}

/** Whether a probe found that the channel cannot do it with the model. */
export const lacks = ({ can }: ChannelRow, model: string, capability: NeededCapability): boolean =>
  can?.[capability] === false && holdsFor(can, model);

/** A channel without a secret is one candidate. */
export function candidatesOf(channel: ChannelRow, model: string): Candidate[] {
  const { secret: own } = channel;
  const secrets = typeof own === 'string' ? [own] : (own ?? [undefined]);
  const share = channel.weight / secrets.length;
  return secrets.map((secret) => {
    const id = secret === undefined ? channel.id : `${channel.id}|${secret}`;
    const hash = hash53(id);
    return Object.freeze({ id, channel, secret, model, share, hash, rankHash: hash53(model, hash) });
  });
}
