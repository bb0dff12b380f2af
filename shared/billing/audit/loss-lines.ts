/**
 * Log lines of closes that were lost or came too late, with everything that `relay-ops audit --repair` needs to write them again. Also
 * reads them back, from raw lines and from AWS's output.
 */
import * as z from 'zod/mini';
import { isRecord, parseJson } from '../../wire/json.ts';
import { closeFields, type CloseRecord, type CloseWrite } from '../quota-item.ts';

export interface LostClose {
  account: string;
  releaseSlot: boolean;
  closeRecord: CloseRecord;
}

const wholeNumber = z.string().check(z.regex(/^-?\d+$/));
/** A record of zod's would be loaded by every function at its start. */
const tags = z.custom<Record<string, string>>(
  (value) => isRecord(value) && Object.values(value).every((each) => typeof each === 'string'),
);
const forms = { text: z.string(), count: z.number(), amount: wholeNumber, flag: z.boolean(), tags };
const fields = Object.entries(closeFields) as [keyof typeof closeFields, keyof typeof forms][];
/** Amounts are in nano-yuan. */
const lineNameOf = (name: string, form: string): string => (form === 'amount' ? `${name}_nano` : name);

const LossLine = z.object({
  message: z.enum(['settle_lost', 'settle_late']),
  request_id: z.string(),
  account: z.string(),
  give_back: z.boolean(),
  kind: z.enum(['settled', 'released', 'expired', 'cancelled']),
  charge_nano: wholeNumber,
  at: z.number(),
  ...Object.fromEntries(fields.map(([name, form]) => [lineNameOf(name, form), z.optional(forms[form])])),
});

export const formatLoss = ({
  account,
  shard: part,
  id,
  releaseSlot,
  closeRecord,
}: CloseWrite): Record<string, unknown> => ({
  request_id: id,
  account,
  part: part === 0 ? undefined : part,
  give_back: releaseSlot,
  kind: closeRecord.kind,
  charge_nano: String(closeRecord.charge),
  at: closeRecord.at,
  ...Object.fromEntries(
    fields.map(([name, form]) => {
      const value = closeRecord[name];
      return [lineNameOf(name, form), typeof value === 'bigint' ? String(value) : value];
    }),
  ),
});

/** The output of `aws logs filter-log-events`. */
const LogEvents = z.object({ events: z.array(z.object({ message: z.string() })) });

/**
 * Accepts raw lines, lines with a time before the JSON, and the output of `aws logs filter-log-events`.
 * Returns each close once.
 */
export function parseLosses(text: string): LostClose[] {
  const { data } = z.safeParse(LogEvents, parseJson(text));
  const messages = data ? data.events.map(({ message }) => message) : text.split('\n');
  const found = messages.flatMap((line) => {
    const start = line.indexOf('{');
    const parsed = start < 0 ? undefined : z.safeParse(LossLine, parseJson(line.slice(start)));
    return parsed?.success ? [parseLostClose(parsed.data)] : [];
  });
  return [...new Map(found.map((loss) => [loss.closeRecord.id, loss])).values()];
}

const parseLostClose = (line: z.infer<typeof LossLine>): LostClose => {
  const values = fields.map(([name, form]) => {
    const value = (line as Record<string, string | number | boolean | object | undefined>)[
      lineNameOf(name, form)
    ];
    return [name, form === 'amount' && typeof value === 'string' ? BigInt(value) : value];
  });
  return {
    account: line.account,
    releaseSlot: line.give_back,
    closeRecord: {
      ...(Object.fromEntries(values) as Partial<CloseRecord>),
      id: line.request_id,
      kind: line.kind,
      charge: BigInt(line.charge_nano),
      at: line.at,
    },
  };
};
