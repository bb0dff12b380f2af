/** What an operator writes of a customer. */
import { choiceField, flagField, third, typed, typedFlag, typedNumber, type RowField } from './row-field.ts';

const limitField = (name: string, label: string): RowField =>
  third(name, label, 'Over all keys. Empty: no limit.', { input: 'numeric' });

/** Without a level there is no plan. */
const planTime = (part: string, label: string, placeholder: string, help: string): RowField => ({
  name: `plan.${part}`,
  label,
  width: 'third',
  placeholder,
  help,
  typed: (text, field) => (field('plan.level') === '' ? undefined : typed(text)),
});

export const accountFields: readonly RowField[] = [
  { name: 'note', label: 'Note', help: 'For you. The customer does not see it.' },
  {
    ...choiceField('enabled', 'Calls', { yes: 'allowed', no: 'refused, with every key' }),
    shown: (value) => (value === undefined || value === true ? 'yes' : 'no'),
    typed: (text) => (typedFlag(text) === true ? undefined : typedFlag(text)),
  },
  limitField('concurrency', 'Calls at once'),
  limitField('rpm', 'Calls a minute'),
  limitField('tpm', 'Tokens a minute'),
  {
    name: 'alert_below',
    label: 'Alert below, yuan',
    input: 'decimal',
    help: 'Empty: no alert.',
    typed: typedNumber,
  },
  { name: 'contact.email', label: 'E-mail', input: 'email', help: 'Alerts of the account go there.' },
  { name: 'contact.webhook', label: 'Webhook', help: 'An address that alerts are posted to, signed.' },
  flagField(
    'metered',
    'Metered',
    'no',
    'Calls are counted and charged to no balance, so no balance bounds them.',
  ),
  {
    ...choiceField('plan.level', 'Plan', { 1: 'level 1', 2: 'level 2', 3: 'level 3' }, 'no plan'),
    width: 'third',
    help: 'Of the table of plans. It covers calls in the place of the balance.',
    typed: typedNumber,
  },
  planTime('since', 'Plan since', '2026-11-01', 'Months are counted from here. Empty: as it is, else today.'),
  planTime('until', 'Plan until', '2027-11-01', 'It covers no call from then on. Empty: no end.'),
];

/** Of one that is made: it can call. */
export const newAccountFields = accountFields.filter(({ name }) => name !== 'enabled');
