/** What an operator writes of a key. */
import { shownValue } from '../markup.ts';
import { choiceField, flagField, third, typedList, type RowField } from './row-field.ts';

/** No name of a model has parentheses. */
const noModels = '(none)';

/** Of a key that is made for a customer. */
export const keyFields: readonly RowField[] = [
  { name: 'name', label: 'Name', help: 'For people: whose or what it is.' },
  {
    name: 'models',
    label: 'Models',
    kind: 'area',
    help: `The only models it may call, apart by commas or lines. Empty: every model. ${noModels}: none.`,
    shown: (value) => {
      const shown = shownValue(value).replaceAll(', ', '\n');
      return value !== undefined && shown === '' ? noModels : shown;
    },
    typed(text) {
      const list = typedList(text);
      if (text === noModels) return [];
      return list.length === 0 ? undefined : list;
    },
  },
  third('rpm', 'Calls a minute', 'Empty: no limit.', { input: 'numeric' }),
  third('max_concurrency', 'Calls at once', 'Empty: no limit.', { input: 'numeric' }),
  {
    name: 'expires_at',
    label: 'Works until',
    width: 'third',
    placeholder: '2027-01-01',
    help: 'Such as 30d or 2027-01-01. Empty: no end.',
  },
  third('budget.amount', 'Budget, yuan', 'The most it may spend of the balance. Empty: no budget.'),
  {
    ...choiceField('budget.period', 'Budget of', { month: 'a month', day: 'a day' }),
    width: 'third',
    typed: (text, field) => (field('budget.amount') === '' ? undefined : text || 'month'),
  },
  { ...flagField('store', 'May store responses', 'as the setting store says'), width: 'third' },
  flagField('official', 'Official mode', 'no', 'Calls deduct nothing from the balance.'),
  flagField(
    'manage',
    'Makes keys',
    'no',
    'Its holder makes, changes and ends keys that may no more than it.',
  ),
];

/** Of one that is there. */
export const heldKeyFields: readonly RowField[] = [
  { name: 'account', label: 'Customer', help: 'Who pays. Earlier calls stay where they were paid.' },
  ...keyFields,
];
