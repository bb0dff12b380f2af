/** The fields of a billing rule, with the relay's marks at those that they name; and the rule that was typed. */
import { perMillion, perThousand } from '../../../../../shared/billing/price.ts';
import type { RawRow } from '../../../../../shared/operate/row-tables.ts';
import { withMarks, type RowMarks } from '../../layout/field-marks.ts';
import type { Field } from '../../layout/form.ts';
import { html, shownValue } from '../../layout/markup.ts';
import { otherAttributes, typed, typedJson, typedList, typedNumber } from '../../visit/typed-fields.ts';
import type { Visit } from '../../visit/visit.ts';

const types = ['token-billing', 'times-billing', 'non-billing'] as const;
export const typeWords = { 'token-billing': 'by token', 'times-billing': 'by call', 'non-billing': 'free' };

/** As they are shown everywhere: for a million tokens. A price by call is one, and what is no number stays as it is. */
const shownPrice = (row: RawRow, name: string): string => {
  const price = row[name];
  const isByToken = row['type'] !== 'times-billing' && typeof price === 'number';
  return isByToken ? perMillion(price) : shownValue(price);
};

/** What is none stays as typed, for the row's schema to refuse. */
function typedPrice(type: string, text: string): number | string | undefined {
  const price = type === 'times-billing' ? undefined : perThousand(text);
  return price !== undefined && price >= 0 && Number.isFinite(price) ? price : typedNumber(text);
}

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
      value: shownPrice(row, 'input'),
      help: 'For a million tokens.',
    },
    {
      name: 'output',
      label: 'Output, yuan',
      width: 'third',
      input: 'decimal',
      value: shownPrice(row, 'output'),
      help: 'For a million tokens, or by call for a call.',
    },
    {
      name: 'cached_input',
      label: 'Cached input, yuan',
      width: 'third',
      input: 'decimal',
      value: shownPrice(row, 'cached_input'),
      help: 'For a million tokens. Empty: as input.',
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
        others, as the table has them: prices for 1,000 tokens.`,
    },
  ];
  return withMarks(fields, marksOf(row));
}

export function attributesIn({ field }: Visit): RawRow {
  return {
    ...typedJson('others', field('others')),
    type: field('type'),
    models: typedList(field('models')),
    input: typedPrice(field('type'), field('input')),
    output: typedPrice(field('type'), field('output')),
    cached_input: typedPrice(field('type'), field('cached_input')),
    from: typed(field('from')),
  };
}
