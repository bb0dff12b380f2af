/** The fields of a billing rule: prices per million tokens, where the row has them per 1,000. */
import { perMillion, convertToPerThousand } from '../../../shared/billing/price.ts';
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { formatCell } from '../markup.ts';
import {
  makeChoice,
  makeJsonList,
  makeNames,
  makeNumber,
  parseTypedNumber,
  type RowField,
} from './row-field.ts';

export const typeWords = { 'token-billing': 'per token', 'times-billing': 'per call', 'non-billing': 'free' };

/** As they are shown everywhere: for a million tokens. A price by call is one, and what is no number stays as it is. */
const formatPrice = (price: unknown, row: RawRow): string =>
  row['type'] !== 'times-billing' && typeof price === 'number' ? perMillion(price) : formatCell(price);

/** An invalid price stays as typed, so that the row's schema rejects it. */
function parsePrice(text: string, field: (name: string) => string): number | string | undefined {
  const price = field('type') === 'times-billing' ? undefined : convertToPerThousand(text);
  return price !== undefined && price >= 0 && Number.isFinite(price) ? price : parseTypedNumber(text);
}

export const fromField = { name: 'from', label: 'Starts', placeholder: 'next monday' };

const prices = { format: formatPrice, parse: parsePrice };

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
  { ...makeNames('models', 'Models', 'Separated by commas or lines.'), required: true },
  makeNumber('input', 'Input (¥)', 'Per 1M tokens.', prices),
  makeNumber('output', 'Output (¥)', 'Per 1M tokens, or per call.', prices),
  makeNumber('cached_input', 'Cached input (¥)', 'Per 1M tokens. Leave empty for the input price.', prices),
  makeJsonList(
    'windows',
    'Prices by the hour',
    'JSON: `[{"name": "peak", "days": ["mon"], "from": "09:00", "to": "12:00", "zone": "Asia/Shanghai", "factor": 2}]`.',
  ),
  {
    ...fromField,
    help: 'Leave empty to start now. A later time creates a new rule that starts then; this one applies until then.',
  },
];
