/** Keys: found by customer, hint or hash. */
import { findKeys } from '../../../../../shared/operate/keys/find-keys.ts';
import { counted } from '../../layout/figures.ts';
import { search } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { emptyState } from '../../layout/notice.ts';
import { pager } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { keyTable } from './key-table.ts';

const pageRows = 100;

export function keyPages(routes: Routes): void {
  routes.page('/keys', list);
}

async function list(visit: Visit): Promise<Page> {
  const text = visit.query('text');
  const after = visit.query('after');
  const wanted = { text: text || undefined, after: after || undefined, limit: pageRows };
  const { keys, next } = await findKeys(visit.ports, wanted);
  const at = new URLSearchParams({
    ...(text !== '' && { text }),
    ...(next !== undefined && { after: next }),
  });
  return {
    title: 'Keys',
    section: 'keys',
    actions: html`<a class="button" href="keys/check">Check a key</a>`,
    body: html`${search({
      action: 'keys',
      verb: 'Find',
      fields: [
        { name: 'text', label: 'Customer, hint or hash', value: text, placeholder: 'acme or sk-AbCd' },
      ],
    })}
    ${keyTable(keys, visit, {
      withAccount: true,
      empty:
        text === ''
          ? emptyState(
              'No key yet',
              html`Keys belong to customers: <a href="customers">choose one</a>, then make a key.`,
            )
          : emptyState('No key fits', html`<a href="keys">Show all keys</a>`),
    })}
    ${pager({
      count:
        counted(keys.length, 'key') +
        (next === undefined ? '' : ', in the order of the table; there are more'),
      ...(after !== '' && { first: 'keys' }),
      ...(next !== undefined && { next: `keys?${at.toString()}` }),
    })}`,
  };
}
