/** Finds the models that may answer a call, and the channels that serve them, in the request's configuration. */
import { ruleOf } from '../../billing/price-rule.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AliasSettings } from '../../config/settings/settings.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { capableChannels } from './capable-channels.ts';
import type { ChatCall } from './chat-call.ts';
import type { ModelName } from './model-name.ts';

export interface AskedModel {
  name: ModelName;
  /** What the call needs decides which channels can answer it. */
  request: ChatRequest;
  key: Pick<KeyRow, 'models'>;
  nowMs: number;
}

/** The enabled channels that can answer a call to a model. Throws a Refusal or an InvalidRequest when there are none. */
export function servingChannels(
  snapshot: Snapshot,
  { name, request, nowMs }: AskedModel,
): [ChannelRow, ...ChannelRow[]] {
  const [first, ...rest] = channelsOf(snapshot, name.base, nowMs);
  if (!first) throw modelNotFound(name.base);
  return capableChannels([first, ...rest], { model: name.base, request });
}

/** The alias of a name. Undefined: it is a model's, or nobody's. */
export const aliasOf = ({ settings, models }: Snapshot, name: string): AliasSettings | undefined => {
  const alias = settings.aliases?.find((one) => one.name === name);
  return alias && !models.includes(name) ? alias : undefined;
};

/** The enabled channels that serve a model, by priority. Empty, too, if it has no price and must have one. */
export function channelsOf(
  { channels, charges, settings }: Snapshot,
  model: string,
  nowMs: number,
): ChannelRow[] {
  if (settings.unpricedModels === 'refuse' && !ruleOf(charges, model, nowMs)) return [];
  return channels.filter(({ models }) => models.includes(model));
}

export const modelNotFound = (model: string): Refusal =>
  refuse(
    'model_not_found',
    `The model "${model}" is not available here. GET /v1/models lists those that are.`,
    { param: 'model' },
  );

type CallToModel = Pick<ChatCall, 'identity' | 'model' | 'channels' | 'alias' | 'outputTokensLimit'>;

/** The call as one of the models that may answer gets it: stages that serve one model read the fields of this. */
export function callTo<Call extends Partial<CallToModel> & Pick<CallToModel, 'identity' | 'model'>>(
  call: Call,
  base: string,
): Call {
  const serving =
    base === call.model.base ? undefined : call.alias?.models.find(({ model }) => model === base);
  if (!serving) return call;
  const { channels, outputTokensLimit } = serving;
  const model = Object.freeze({ ...call.model, base });
  const identity = Object.freeze({ ...call.identity, model: base });
  return Object.freeze({ ...call, identity, model, channels, outputTokensLimit });
}
