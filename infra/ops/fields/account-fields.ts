/** The fields of a customer that an operator can edit. */
import { makeEntries } from './form-fields.ts';
import { customerPriceEntries } from './price-fields.ts';
import {
  makeChoice,
  makeCount,
  makeFlag,
  makeNumber,
  makeShort,
  parseText,
  parseFlag,
  parseTypedNumber,
  type RowField,
} from './row-field.ts';

const limitHelp = 'Across all keys. Leave empty for no limit.';

/** Without a level there is no plan. */
const planTime = (part: string, label: string, placeholder: string, help: string): RowField =>
  makeShort(`plan.${part}`, label, help, {
    placeholder,
    parse: (text, field) => (field('plan.level') === '' ? undefined : parseText(text)),
  });

export const accountFields: readonly RowField[] = [
  { name: 'note', label: 'Note', help: 'For you; the customer does not see it.' },
  {
    ...makeChoice('enabled', 'Calls', { yes: 'allowed', no: 'refused, for all keys' }),
    format: (value) => (value === undefined || value === true ? 'yes' : 'no'),
    parse: (text) => (parseFlag(text) === true ? undefined : parseFlag(text)),
  },
  makeCount('concurrency', 'Concurrent calls', limitHelp),
  makeCount('rpm', 'Calls per minute', limitHelp),
  makeCount('tpm', 'Tokens per minute', limitHelp),
  makeNumber('alert_below', 'Alert below (¥)', 'Leave empty for no alert.'),
  makeFlag('auto_top_up', 'Automatic top-up', 'yes', {
    help: '`no`: the stored card of the customer is not charged.',
  }),
  { name: 'price_group', label: 'Price group', help: 'A name in the setting `price_groups`.' },
  makeEntries(
    'prices',
    'Prices',
    'JSON, per 1,000 tokens; the first entry in force that matches counts, then the group: `[{"models": ["gpt-*"], "factor": 0.8}]`.',
    customerPriceEntries,
  ),
  makeEntries(
    'budgets',
    'Budgets by tag or end user',
    'JSON: yuan per day or month for a tag or an end user; `*` stands for all other names: ' +
      '`[{"by": "tag:team", "name": "*", "amount": 5, "period": "day"}]`. `[]` removes all.',
    {
      noun: 'Budget',
      about: 'The most that a tag or an end user may spend from the balance.',
      fields: [
        makeShort('by', 'By', '`end_user`, or `tag:` and the name of the tag.', { placeholder: 'tag:team' }),
        makeShort('name', 'Name', 'Leave empty for all names that have no budget of their own.'),
        makeNumber('amount', 'Amount (¥)', 'At most 9 decimals.'),
        { ...makeChoice('period', 'Period', { day: 'per day', month: 'per month' }), width: 'third' },
      ],
    },
  ),
  { name: 'contact.name', label: 'Contact', help: 'The person to contact. The customer does not see it.' },
  {
    name: 'contact.email',
    label: 'Email',
    input: 'email',
    placeholder: 'ops@example.com',
    help: 'Receives the alerts of this customer.',
  },
  { name: 'contact.webhook', label: 'Webhook', help: 'An address that receives signed alerts.' },
  {
    name: 'anthropic_profile',
    label: 'Anthropic profile',
    placeholder: 'uprof_...',
    help: 'Lets Anthropic restrict only this customer. `customer profile` registers one.',
  },
  makeFlag('metered', 'Metered', 'no', {
    help: 'Calls are counted but not paid from the balance, so the balance does not limit them.',
  }),
  makeChoice('plan.level', 'Plan', { 1: 'level 1', 2: 'level 2', 3: 'level 3' }, 'no plan', {
    width: 'third',
    help: 'Pays for calls instead of the balance. Plans are defined in the settings.',
    parse: parseTypedNumber,
  }),
  planTime(
    'since',
    'Plan since',
    '2026-11-01',
    'Plan months start on this day. Leave empty to keep it, or for today.',
  ),
  planTime('until', 'Plan until', '2027-11-01', 'The plan ends here. Leave empty for no end.'),
];

/** Defaults of a new customer: it can call. */
export const newAccountFields = accountFields.filter(({ name }) => name !== 'enabled');
