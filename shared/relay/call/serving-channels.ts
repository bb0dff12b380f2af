/**
 * Finds what serves a model in the request's configuration. Built once for each model of a snapshot, at the model's
 * first call; must not keep anything of a call, or of names that nobody serves.
 */
import { ruleOf } from '../../billing/price-rule.ts';
import { holdsFor } from '../../config/rows/capabilities.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import { hash53 } from '../../wire/fingerprint.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import type { Candidate, Serving } from './candidate.ts';
import type { ChatCall } from './chat-call.ts';
import { channelLimits } from './output-limit.ts';

const neededCapabilities = ['tools', 'images', 'json_schema'] as const;
/** What a call may need and a probe may deny. */
export type NeededCapability = (typeof neededCapabilities)[number];

export interface ServedModel extends Serving {
  /** What a probe denied at least one of the channels. */
  readonly denied: ReadonlySet<NeededCapability>;
}

/** What of a snapshot was asked for. */
interface Index {
  readonly models: Map<string, ServedModel>;
  readonly places: Map<ChannelRow, readonly Place[]>;
}

/** One for each function: what it has built is forgotten with its snapshot. */
export class ServingChannels {
  readonly #bySnapshot = new WeakMap<Snapshot, Index>();

  /** Undefined: no enabled channel serves the model, or it has no price and must have one. */
  find(snapshot: Snapshot, model: string, nowMs: number): ServedModel | undefined {
    const served = this.#served(snapshot, model);
    const isPriced = served && ruleOf(served.charges, model, nowMs) !== undefined;
    return isPriced || !needsPrice(snapshot, model) ? served : undefined;
  }

  /** Throws a Refusal when there are none. */
  of(snapshot: Snapshot, model: string, nowMs: number): ServedModel {
    const found = this.find(snapshot, model, nowMs);
    if (!found) throw modelNotFound(model, snapshot.models.includes(model) ? 'no_price' : 'no_channel');
    return found;
  }

  #served(snapshot: Snapshot, model: string): ServedModel | undefined {
    let index = this.#bySnapshot.get(snapshot);
    if (!index) this.#bySnapshot.set(snapshot, (index = { models: new Map(), places: new Map() }));
    const known = index.models.get(model);
    if (known) return known;
    // Names that nobody serves cost little and leave nothing behind, however many a caller invents.
    const built = snapshot.models.includes(model) ? servedModel(snapshot, model, index.places) : undefined;
    if (built) index.models.set(model, built);
    return built;
  }
}

export const modelNotFound = (model: string, reason: 'no_channel' | 'no_price'): Refusal =>
  refuse(
    'model_not_found',
    `The model "${model}" is not available here. GET /v1/models lists those that are.`,
    { param: 'model', reason },
  );

/** The call as one of the models that may answer gets it: stages that serve one model read the fields of this. */
export function callTo<Call extends Pick<ChatCall, 'identity' | 'model' | 'alias'>>(
  call: Call,
  base: string,
): Call {
  if (base === call.model.base) return call;
  const serving = call.alias?.models.find(({ model }) => model === base);
  if (!serving) return call;
  const { model: _model, ...served } = serving;
  const model = Object.freeze({ ...call.model, base });
  const identity = Object.freeze({ ...call.identity, model: base });
  return Object.freeze({ ...call, outputTokensLimit: undefined, ...served, identity, model });
}

function servedModel(snapshot: Snapshot, model: string, places: Index['places']): ServedModel | undefined {
  const serves = ({ models }: { models: readonly string[] }): boolean => models.includes(model);
  const channels = snapshot.channels.filter(serves);
  if (channels.length === 0) return undefined;
  const candidates = channels.flatMap((channel) => {
    const known = places.get(channel) ?? placesOf(channel);
    places.set(channel, known);
    return candidatesAt(known, model);
  });
  return Object.freeze({
    candidates: Object.freeze(candidates),
    limits: channelLimits(candidates),
    denied: new Set(
      neededCapabilities.filter((needed) => channels.some((channel) => lacks(channel, model, needed))),
    ),
    charges: Object.freeze(snapshot.charges.filter(serves)),
  });
}

/** Whether a probe found that the channel cannot do it with the model. */
export const lacks = ({ can }: ChannelRow, model: string, capability: NeededCapability): boolean =>
  can?.[capability] === false && holdsFor(can, model);

/** A channel with one of its secrets: what its candidates of all models share. */
type Place = Omit<Candidate, 'model'>;

/** A channel without a secret is one place. */
function placesOf(channel: ChannelRow): readonly Place[] {
  const { secret: own } = channel;
  // A reference that is listed twice is one secret, with one balance and one limit.
  const secrets = typeof own === 'string' ? [own] : [...new Set(own ?? [undefined])];
  const share = channel.weight / secrets.length;
  return secrets.map((secret) => {
    const id = secret === undefined ? channel.id : `${channel.id}|${secret}`;
    return Object.freeze({ id, channel, secret, share, hash: hash53(id) });
  });
}

const candidatesAt = (places: readonly Place[], model: string): Candidate[] =>
  places.map((place) => Object.freeze(new ServedCandidate(place, model)));

export const candidatesOf = (channel: ChannelRow, model: string): Candidate[] =>
  candidatesAt(placesOf(channel), model);

/** Small, since there is one for each channel, secret and model. */
class ServedCandidate implements Candidate {
  readonly model: string;
  readonly #place: Place;

  constructor(place: Place, model: string) {
    this.#place = place;
    this.model = model;
  }

  get id(): string {
    return this.#place.id;
  }

  get channel(): ChannelRow {
    return this.#place.channel;
  }

  get secret(): string | undefined {
    return this.#place.secret;
  }

  get share(): number {
    return this.#place.share;
  }

  get hash(): number {
    return this.#place.hash;
  }
}
