/** What an operator writes of a customer, but for the plan. */
import { choiceField, flagField, typedFlag, typedNumber, type RowField } from './row-field.ts';

const limitField = (name: string, label: string): RowField => ({
  name,
  label,
  input: 'numeric',
  help: 'Over all keys. Empty: no limit.',
  typed: typedNumber,
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
];
