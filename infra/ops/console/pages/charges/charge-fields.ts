/** The fields of a billing rule, with the relay's marks at those that they name; and the rule that was typed. */
import type { RawRow } from '../../../../../shared/operate/row-tables.ts';
import { withMarks, type RowMarks } from '../../layout/field-marks.ts';
import type { Field } from '../../layout/form.ts';
import { html, shownValue } from '../../layout/markup.ts';
import { otherAttributes, typed, typedJson, typedList, typedNumber } from '../../visit/typed-fields.ts';
import type { Visit } from '../../visit/visit.ts';

const types = ['token-billing', 'times-billing', 'non-billing'] as const;
export const typeWords = { 'token-billing': 'by token', 'times-billing': 'by call', 'non-billing': 'free' };

/** What customers are shown, so that nobody types the one for the other. */
const millionWords = (price: unknown): string =>
  typeof price === 'number' ? ` Now ${Number((price * 1000).toPrecision(12))} for a million.` : '';

const own = ['type', 'models', 'input', 'output', 'cached_input', 'from'] as const;

export const marksOf = ({ _problem: problem, _warning: warning }: RawRow): RowMarks => ({
  ...(typeof problem === 'string' && { problem }),
  ...(typeof warning === 'string' && { warning }),
});

export function fieldsOf(row: RawRow): Field[] {
  const others = otherAttributes(row, own);
  const fields: Field[] = [
    {
      name: 'type',
      label: 'Type',
      kind: 'choice',
      value: shownValue(row['type']),
      choices: types.map((each) => [each, `${each}: ${typeWords[each]}`]),
    },
    {
      name: 'models',
      label: 'Models',
      kind: 'area',
      required: true,
      value: shownValue(row['models']).replaceAll(', ', '\n'),
      help: 'Apart by commas or lines.',
    },
    {
      name: 'input',
      label: 'Input, yuan',
      width: 'third',
      input: 'decimal',
      value: shownValue(row['input']),
      help: html`For 1,000 tokens.${millionWords(row['input'])}`,
    },
    {
      name: 'output',
      label: 'Output, yuan',
      width: 'third',
      input: 'decimal',
      value: shownValue(row['output']),
      help: html`For 1,000 tokens, or for a call.${millionWords(row['output'])}`,
    },
    {
      name: 'cached_input',
      label: 'Cached input, yuan',
      width: 'third',
      input: 'decimal',
      value: shownValue(row['cached_input']),
      help: html`For 1,000 tokens. Empty: as input.${millionWords(row['cached_input'])}`,
    },
    {
      name: 'from',
      label: 'From',
      value: shownValue(row['from']),
      placeholder: '2026-12-01T00:00:00Z',
      help: 'Empty: at once. Later: a rule of its own begins then, by itself; this one stays until then.',
    },
    {
      name: 'others',
      label: 'Other attributes',
      kind: 'area',
      value: Object.keys(others).length === 0 ? '' : JSON.stringify(others, null, 2),
      help: html`JSON: <code>tiers</code>, <code>cache_write</code>, <code>max_output_tokens</code> and
        others.`,
    },
  ];
  return withMarks(fields, marksOf(row));
}

export function attributesIn({ field }: Visit): RawRow {
  return {
    ...typedJson('others', field('others')),
    type: field('type'),
    models: typedList(field('models')),
    input: typedNumber(field('input')),
    output: typedNumber(field('output')),
    cached_input: typedNumber(field('cached_input')),
    from: typed(field('from')),
  };
}
