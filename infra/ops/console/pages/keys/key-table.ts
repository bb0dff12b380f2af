/** Keys as a table: by their hints, since nothing else of them is stored. */
import { shownHash } from '../../../../../shared/operate/keys/key-state.ts';
import type { KeyView } from '../../../../../shared/operate/keys/list-keys.ts';
import { writtenTime } from '../../layout/times.ts';
import { html, nothing, shownValue, type Content, type Markup } from '../../layout/markup.ts';
import { badge, table } from '../../layout/table.ts';
import type { Visit } from '../../visit/visit.ts';

const marks: Record<KeyView['state'], 'good' | 'bad' | 'warning' | 'calm'> = {
  usable: 'good',
  unknown: 'bad',
  invalid: 'bad',
  disabled: 'calm',
  expired: 'calm',
  kind: 'warning',
};
const words: Partial<Record<KeyView['state'], string>> = { usable: 'works', invalid: 'not used' };

export function keyTable(
  keys: readonly KeyView[],
  { options, nowMs }: Visit,
  { empty, withAccount = false }: { empty: Content; withAccount?: boolean },
): Markup {
  return table({
    caption: 'Keys',
    rows: keys,
    empty,
    markOf: ({ state }) => (state === 'invalid' ? 'bad' : undefined),
    columns: [
      {
        title: 'Key',
        isHead: true,
        show: ({ row }) => html`<code>${shownValue(row['hint']) || 'no hint'}</code>`,
      },
      { title: 'State', show: ({ state }) => badge(words[state] ?? state, marks[state]) },
      ...(withAccount
        ? [
            {
              title: 'Customer',
              show: ({ row }: KeyView) =>
                html`<a href="customers/${encodeURIComponent(shownValue(row['account']))}"
                  >${shownValue(row['account'])}</a
                >`,
            },
          ]
        : []),
      { title: 'May', show: ({ why }) => html`<span class="cut" title="${why}">${why}</span>` },
      {
        title: 'Made',
        show: ({ row }) => writtenTime(row['_created'], nowMs),
      },
      {
        title: 'Hash',
        show: ({ row }) =>
          html`<code title="${shownHash(shownValue(row['hash']))}"
            >${shownHash(shownValue(row['hash'])).slice(0, 8)}</code
          >`,
      },
      ...(options.readOnly
        ? []
        : [
            {
              title: 'Actions',
              isActions: true,
              show: ({ row, state }: KeyView) => {
                const path = `keys/${encodeURIComponent(shownValue(row['hash']))}`;
                return state === 'usable'
                  ? html`<a href="${path}/rotate">Rotate</a> · <a href="${path}/disable">Disable</a> ·
                      <a href="${path}/leaked">Leaked</a>`
                  : nothing;
              },
            },
          ]),
    ],
  });
}
