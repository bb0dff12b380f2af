/** The fields of a key that an operator can edit. */
import { formatCell } from '../markup.ts';
import {
  makeChoice,
  makeCount,
  makeFlag,
  makeNames,
  makeNumber,
  makeShort,
  parseNames,
  type RowField,
} from './row-field.ts';

/** No name of a model has parentheses. */
const noModels = '(none)';

export const keyFields: readonly RowField[] = [
  { name: 'name', label: 'Name', help: 'Who or what uses the key.' },
  makeNames(
    'models',
    'Models',
    `The only models it may call, separated by commas or lines. Leave empty for all models, or enter ${noModels}.`,
    {
      format: (value) => (value === undefined ? '' : formatCell(value).replaceAll(', ', '\n') || noModels),
      parse: (text) => (text === noModels ? [] : parseNames(text)),
    },
  ),
  makeCount('rpm', 'Calls per minute', 'Leave empty for no limit.'),
  makeCount('max_concurrency', 'Concurrent calls', 'Leave empty for no limit.'),
  makeShort('expires_at', 'Expires', 'For example 30d or 2027-01-01. Leave empty for never.', {
    placeholder: '2027-01-01',
  }),
  makeNumber(
    'budget.amount',
    'Budget (¥)',
    'The most it may spend of the balance. Leave empty for no budget.',
  ),
  {
    ...makeChoice('budget.period', 'Budget period', { month: 'per month', day: 'per day' }),
    width: 'third',
    parse: (text, field) => (field('budget.amount') === '' ? undefined : text || 'month'),
  },
  makeFlag('store', 'May store responses', 'as in the setting store', { width: 'third' }),
  makeFlag('official', 'Official mode', 'no', { help: 'Calls are not charged to the balance.' }),
  makeFlag('manage', 'Can manage keys', 'no', {
    help: 'May create, change and revoke keys that have no more permissions than itself.',
  }),
];

export const existingKeyFields: readonly RowField[] = [
  {
    name: 'account',
    label: 'Customer',
    help: 'Who pays for calls from now on. Earlier calls stay with who paid them.',
  },
  ...keyFields,
];

const enabledField = makeFlag('enabled', 'Enabled', 'yes');
export const newKeyFields = [enabledField, ...keyFields];
export const keyRowFields = [enabledField, ...existingKeyFields];
