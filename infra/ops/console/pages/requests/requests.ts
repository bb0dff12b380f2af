/** Requests: one by its id as a story, and the newest of a customer. */
import { oneRequest } from './request.ts';
import { requestTable } from './request-table.ts';
import { search } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { emptyState, warnings } from '../../layout/notice.ts';
import { pager } from '../../layout/table.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';

const pageRows = 50;

export function requestPages(routes: Routes): void {
  routes.page('/requests', list);
  routes.page('/requests/:id', oneRequest);
}

async function list(visit: Visit): Promise<Page> {
  const { ports, query } = visit;
  const id = query('id');
  if (id !== '') return oneRequest({ ...visit, part: () => id });
  const account = query('account');
  const before = query('before');
  const found =
    account === '' ? undefined : await ports.pages.requests(account, before || undefined, pageRows);
  const at = new URLSearchParams({ account, ...(found?.next !== undefined && { before: found.next }) });
  const address = `requests?account=${encodeURIComponent(account)}`;
  return {
    title: 'Requests',
    section: 'requests',
    body: html`<div class="columns">
        ${search({
          action: 'requests',
          verb: 'Explain it',
          fields: [
            {
              name: 'id',
              label: 'Id of a request or an answer',
              placeholder: 'chatcmpl-01jd3k… or x-request-id',
            },
          ],
        })}
        ${search({
          action: 'requests',
          verb: 'Show',
          fields: [{ name: 'account', label: 'Newest of a customer', value: account }],
        })}
      </div>
      ${
        found === undefined
          ? html`<div class="empty">
              ${emptyState(
                'Why did it fail, why did it cost that much?',
                'Customers have the id in the header x-request-id and in each answer. Without one, look at the newest requests of the customer.',
              )}
            </div>`
          : html`${warnings(found.rows.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])))}
            ${requestTable(
              found.rows.flatMap((each) => ('row' in each ? [each.row] : [])),
              visit,
            )}
            ${pager({
              count: `${found.rows.length} requests, newest first`,
              ...(before !== '' && { first: address }),
              ...(found.next !== undefined && { next: `requests?${at.toString()}` }),
            })}`
      }`,
  };
}
