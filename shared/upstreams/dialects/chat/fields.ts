/** Leaves out what one upstream does not take, by name, and never what would change the answer's meaning. */
import { priceFields } from '../../price-fields.ts';
import { asRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { CannotCarry, type RequestSettings } from '../../dialect.ts';
import { knownEffort, limitFields, refusedSampling } from '../../quirks.ts';

export interface FittedFields {
  body: JsonRecord;
  /** The names of the fields that were left out. */
  dropped: string[];
  /** The effort that is sent, if it is not the requested one. */
  effort: string | undefined;
}

const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.length === 0);

/** Fields that must not be left out, each unless its value is what holds without it. */
const binding = new Map<string, (value: unknown) => boolean>([
  ['response_format', (value) => asRecord(value)['type'] !== 'text'],
  ['tools', (value) => !isEmpty(value)],
  ['functions', (value) => !isEmpty(value)],
  ['tool_choice', (value) => value !== 'auto'],
  ['stop', (value) => !isEmpty(value)],
  ['n', (value) => value !== 1],
  ...limitFields.map((field): [string, () => boolean] => [field, () => true]),
]);

/** `asked`: all fields but the model and the conversation. Throws CannotCarry. */
export function fittedFields(asked: JsonRecord, { quirks, allow }: RequestSettings): FittedFields {
  const body = { ...asked };
  const dropped: string[] = [];
  const drop = (field: string): void => {
    if (!Object.hasOwn(body, field)) return;
    delete body[field];
    dropped.push(field);
  };
  for (const field of priceFields) if (!allow.includes(field)) drop(field);
  for (const [field, value] of Object.entries(body)) {
    if (!quirks.fields || quirks.fields.has(field)) continue;
    if (binding.get(field)?.(value) === true)
      throw new CannotCarry(field, `'${field}' is not supported by the upstream.`);
    drop(field);
  }
  for (const field of refusedSampling(body, quirks)) drop(field);

  const requested = body['reasoning_effort'];
  if (typeof requested !== 'string' || !quirks.efforts) return { body, dropped, effort: undefined };
  const effort = knownEffort(requested, quirks.efforts);
  if (effort === undefined) drop('reasoning_effort');
  else body['reasoning_effort'] = effort;
  return { body, dropped, effort: effort === requested ? undefined : effort };
}
