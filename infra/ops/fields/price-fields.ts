/** The fields of prices and of a billing rule. Prices are per million tokens, where the row has them per 1,000. */
import { perMillion, convertToPerThousand } from '../../../shared/billing/price.ts';
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { formatWrittenMoney } from '../../../shared/operate/plan.ts';
import { weekdays } from '../../../shared/billing/schedule.ts';
import { mappedColumns } from '../../../shared/operate/prices/price-mapping.ts';
import { partPrices } from '../../../shared/wire/chat-response.ts';
import { formatCell } from '../markup.ts';
import { makeEntries } from './form-fields.ts';
import {
  makeChoice,
  makeCount,
  makeFlag,
  makeLines,
  makeNames,
  makeNumber,
  makeShort,
  parseNames,
  parseTypedList,
  parseTypedNumber,
  type RowField,
} from './row-field.ts';

export const typeWords = { 'token-billing': 'per token', 'times-billing': 'per call', 'non-billing': 'free' };

/** Formats a price for a million tokens, as everywhere in the console. A price per call or an invalid price stays unchanged. */
export const formatPrice = (price: unknown, row: RawRow): string =>
  row['type'] !== 'times-billing' && typeof price === 'number' ? perMillion(price) : formatCell(price);

/** An invalid price stays as typed, so that the row's schema rejects it. */
function parsePrice(text: string, field: (name: string) => string): number | string | undefined {
  const price = field('type') === 'times-billing' ? undefined : convertToPerThousand(text);
  return price !== undefined && price >= 0 && Number.isFinite(price) ? price : parseTypedNumber(text);
}

export const fromField = { name: 'from', label: 'Starts', placeholder: 'next monday' };

export const makePrice = (name: string, label: string, help: string): RowField =>
  makeNumber(name, label, help, { format: formatPrice, parse: parsePrice, show: addUnit });

export const addUnit = (price: string, { type, currency }: RawRow): string =>
  `${currency === undefined ? formatWrittenMoney(price) : `${formatCell(currency)} ${price}`} per ${type === 'times-billing' ? 'call' : '1M tokens'}`;

/** Prices of parts of the input. @param unit ends the labels */
export const makePartPrices = (unit: string): RowField[] =>
  partPrices.map((price) =>
    makePrice(
      price,
      `${price.replaceAll('_', ' ').replace('c', 'C')} ${unit}`,
      'Per 1M tokens. Leave empty for the input price.',
    ),
  );

const rateFields: readonly RowField[] = [
  makePrice('input', 'Input (¥)', 'Per 1M tokens.'),
  makePrice('output', 'Output (¥)', 'Per 1M tokens, or per call.'),
  ...makePartPrices('(¥)'),
];

const windowFields: readonly RowField[] = [
  makeShort('name', 'Name', 'Shown in usage.', { placeholder: 'peak' }),
  makeShort('from', 'From', 'The first minute.', { placeholder: '09:00' }),
  makeShort('to', 'To', 'The first minute after the window; may be on the next day.', {
    placeholder: '18:00',
  }),
  makeShort('days', 'Days', `Any of ${weekdays.join(', ')}. Leave empty for all.`, {
    placeholder: 'mon, tue',
    parse: parseNames,
  }),
  makeShort('zone', 'Time zone', 'Must be the same for all windows.', { placeholder: 'Asia/Shanghai' }),
  makeShort('except', 'Except on', 'Dates on which the window does not start.', {
    placeholder: '2026-10-01',
    parse: parseNames,
  }),
  makeNumber(
    'factor',
    'Factor',
    'Multiplies all prices of the rule, such as 0.5. Leave empty to enter prices below.',
  ),
  ...rateFields,
];

/** The fields of a price that one customer or group has. The form adds a price above those that it replaces. */
export const customerPriceFields: readonly RowField[] = [
  makeNames('models', 'Models', 'Separated by commas or lines. `*` stands for any text.'),
  makeNumber(
    'factor',
    'Factor',
    'Multiplies the standard price, such as 1.2. Leave empty to enter prices below.',
  ),
  makeShort('from', 'Starts', 'UTC unless you add a zone. Leave empty for now.', {
    placeholder: 'next monday',
  }),
  makeShort('until', 'Ends', 'UTC unless you add a zone. Leave empty for no end.', { placeholder: '30d' }),
  makeChoice('type', 'Type', typeWords, 'factor, or per token', { width: 'third' }),
  ...rateFields.slice(0, 3),
];

export const customerPriceEntries = {
  noun: 'Price',
  about: 'The first price in force that matches the model counts, so add a new price at the top.',
  fields: customerPriceFields,
  addsFirst: true,
};

/** The fields of a rule's page and the columns of rules as CSV. */
export const ruleFields: readonly RowField[] = [
  {
    ...makeChoice(
      'type',
      'Type',
      Object.fromEntries(Object.entries(typeWords).map(([type, words]) => [type, `${type}: ${words}`])),
    ),
    parse: (text) => text,
  },
  { ...makeNames('models', 'Models'), required: true, parse: parseTypedList },
  ...rateFields.slice(0, 3),
  makeEntries(
    'windows',
    'Prices by the hour',
    'JSON, prices per 1,000 tokens: `[{"name": "peak", "days": ["mon"], "from": "09:00", "to": "12:00", "zone": "Asia/Shanghai", "factor": 2}]`.',
    { noun: 'Window', fields: windowFields },
  ),
  {
    ...fromField,
    help: 'Leave empty to start now. A later time creates a new rule that starts then; this one applies until then.',
  },
];

const advanced: readonly RowField[] = [
  ...rateFields.slice(3),
  makeLines('service_tiers', 'Service tiers', 'Factors, one per line: `priority = 2`.'),
  makeCount('max_output_tokens', 'Max output tokens', 'Leave empty for no limit.'),
  makeCount('default_output_tokens', 'Default output tokens', 'Reserved if a call sets no limit.'),
  makeCount('image_tokens', 'Tokens per image', 'Reserved for each image.'),
  makeNumber('input_factor', 'Input factor', 'Multiplies the reserved input: 1 to 4.'),
  makeFlag('anonymous', 'Anonymous', 'no', { help: 'Show this price to visitors without a key.' }),
];

/** The fields of a rule's form: those of a sheet and more. */
export const ruleFormFields: readonly RowField[] = [
  ...ruleFields,
  makeEntries('tiers', 'Prices of long inputs', 'JSON', {
    noun: 'Tier',
    about: 'A call with a longer input has these prices for all its tokens. List the lowest limit first.',
    fields: [makeCount('above', 'Above input tokens', 'Cached tokens count too.'), ...rateFields],
  }),
  ...advanced.map((field) => Object.assign({}, field, { group: 'Advanced' })),
];

export const mappingFields: readonly RowField[] = [
  makeShort('vendor', 'Vendor', 'The columns are saved under this name.'),
  ...mappedColumns.map((name): RowField => ({
    name: `columns.${name}`,
    label: `Column of ${name.replaceAll('_', ' ')}`,
    width: 'third',
  })),
  makeChoice('per', 'Unit', { 1e6: 'per 1M tokens', 1000: 'per 1,000 tokens', 1: 'per token' }, undefined, {
    width: 'third',
    parse: parseTypedNumber,
  }),
  makeChoice('currency', 'Currency', { cny: 'yuan', usd: 'US dollars' }, undefined, { width: 'third' }),
];
