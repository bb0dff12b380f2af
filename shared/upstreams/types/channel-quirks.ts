/**
 * Decides how a channel differs from its dialect for one model: what its row says, else its type, else its model.
 */
import { noQuirks, type LimitField, type Quirks } from '../quirks.ts';
import type { ChannelAttributes, ChannelType } from '../channel-type.ts';
import { familyQuirks } from '../model-families.ts';
import { channelTypes, type ChannelTypeName, type OwnAttributeName } from './channel-types.ts';

/** A row's `params` for its quirks, by their names in the row. Absent: as the type and the model have it. */
export interface QuirkParams {
  call_ids?: Quirks['callIds'] | undefined;
  system?: Quirks['system'] | undefined;
  null_content?: Quirks['nullContent'] | undefined;
  think_tags?: boolean | undefined;
  efforts?: string[] | undefined;
  custom_tools?: boolean | undefined;
  wants_back?: Quirks['wantsBack'];
}

type QuirkRow = ChannelAttributes<OwnAttributeName> & {
  type: ChannelTypeName;
  max_tokens_field?: LimitField | undefined;
  params: QuirkParams;
};

/** `model`: the upstream's name. */
export function channelQuirks(channel: QuirkRow, model: string): Quirks {
  const type: ChannelType<OwnAttributeName> = channelTypes[channel.type];
  return {
    ...noQuirks,
    ...modelQuirks(model, channel.max_tokens_field ?? type.limitField(channel)),
    ...type.quirks?.(channel, model),
    ...namedQuirks(channel.params),
  };
}

/** Other servers of such a model may accept another field for a limit: theirs is what the channel says. */
function modelQuirks(model: string, limitField: string): Partial<Quirks> {
  const { limitFields, ...quirks } = familyQuirks(model);
  return limitFields?.some((field) => field === limitField) ? { ...quirks, limitFields } : quirks;
}

function namedQuirks(params: QuirkParams): Partial<Quirks> {
  const named: Partial<Quirks> = {
    callIds: params.call_ids,
    system: params.system,
    nullContent: params.null_content,
    thinkTags: params.think_tags,
    efforts: params.efforts,
    customTools: params.custom_tools,
    wantsBack: params.wants_back,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}
