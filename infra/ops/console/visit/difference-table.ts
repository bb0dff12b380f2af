/** Differences of rows as a table: attribute, before, after. */
import type { AttributeChange, RowDifference } from '../../../../shared/operate/config/row-changes.ts';
import { html, nothing, shownValue, type Markup } from '../layout/markup.ts';
import { table } from '../layout/table.ts';

interface ShownChange {
  row: string;
  change: RowDifference['change'];
  attribute: AttributeChange;
}

export function differenceTable(differences: readonly RowDifference[]): Markup {
  if (differences.length === 0) return nothing;
  const rows = differences.flatMap(({ table: of, key, change, attributes }): ShownChange[] =>
    attributes.map((attribute) => ({ row: `${of} ${key}`, change, attribute })),
  );
  return table({
    caption: 'Differences',
    rows,
    empty: 'No difference.',
    columns: [
      { title: 'Row', isHead: true, show: ({ row }) => row },
      { title: 'Change', show: ({ change }) => change },
      { title: 'Attribute', show: ({ attribute }) => html`<code>${attribute.name}</code>` },
      {
        title: 'Before',
        show: ({ attribute }) => html`<span class="wide old">${valueWords(attribute.before)}</span>`,
      },
      {
        title: 'After',
        show: ({ attribute }) => html`<span class="wide new">${valueWords(attribute.after)}</span>`,
      },
    ],
  });
}

const shownMax = 400;

function valueWords(value: unknown): string {
  const text = shownValue(value);
  return text.length > shownMax ? `${text.slice(0, shownMax)}… (${text.length} characters)` : text;
}
