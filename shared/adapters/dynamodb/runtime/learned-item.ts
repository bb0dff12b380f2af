/**
 * The item `learned` of the table `runtime`: one attribute for each fact, `<fact>|<channel>|<model>`, whose value is the
 * fact's end in epoch milliseconds.
 */
import type { Fact, LearnedFact, ServedModel } from '../../../config/learned-fact.ts';
import type { RuntimeItem } from './runtime-items.ts';

export const learnedId = 'learned';

/** A channel's id has no bar; a model's name may not contain one either. */
const form =
  /^(keeps_state|(?:refuses_limit|limit_over_context):\d{1,9}|(?:speaks|wants_back):[\w-]{1,40}|efforts:[a-z+]{1,60})\|([^|]+)\|([^|]+)$/;

export const factName = ({ fact, channel, model }: ServedModel & { fact: Fact }): string =>
  `${fact}|${channel}|${model}`;

/** All facts of an item, those that have ended included. */
export const factsOf = (item: RuntimeItem | undefined): LearnedFact[] =>
  Object.entries(item ?? {}).flatMap(([attribute, untilMs]) => {
    const [, fact, channel, model] = form.exec(attribute) ?? [];
    if (fact === undefined || channel === undefined || model === undefined) return [];
    return typeof untilMs === 'number' ? [{ fact: fact as Fact, channel, model, untilMs }] : [];
  });
