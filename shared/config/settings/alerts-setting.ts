import * as z from 'zod/mini';
import { daysUpTo, optionMap, text } from '../rows/attribute-schemas.ts';
import { endpointProblem } from '../../upstreams/endpoint-rules.ts';
import { referenceProblem, type ReferenceRules } from '../rows/secret-reference.ts';
import type { AlertSettings } from './settings.ts';

/** The setting `alerts`: whom the relay tells about accounts, and how long before a date. */
export const AlertsValue = optionMap(
  {
    /** The operators' receiver: an address under the rules of a channel's endpoint. */
    webhook: z.optional(text),
    /** A secret reference, as in channels. It signs what is posted, to customers too. */
    secret: z.optional(text),
    plan_days: z._default(daysUpTo(90), 7),
    key_days: z._default(daysUpTo(90), 7),
  },
  'a map {webhook, secret, plan_days, key_days}',
);
type AlertsValue = z.infer<typeof AlertsValue>;

/** Checks the rules beyond the schema. */
export function readAlerts(
  { webhook, secret, plan_days: planDays, key_days: keyDays }: AlertsValue,
  rules: ReferenceRules,
): { problem: string } | { alerts: AlertSettings } {
  const wrongAddress = webhook === undefined ? undefined : endpointProblem(webhook, rules);
  if (wrongAddress !== undefined) return { problem: `value.webhook: ${wrongAddress}` };
  const wrongSecret = secret === undefined ? undefined : referenceProblem(secret, rules);
  if (wrongSecret !== undefined) return { problem: `value.secret: ${wrongSecret}` };
  if (webhook !== undefined && secret === undefined)
    return { problem: 'value.secret: found nothing, wanted a secret reference: what is posted is signed' };
  return { alerts: { webhook, secret, planDays, keyDays } };
}
