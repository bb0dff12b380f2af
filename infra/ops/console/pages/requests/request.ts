/** One request, step by step, with the amounts that led to its charge. */
import { ledgerTimeMs } from '../../../../../shared/billing/ledger-row.ts';
import { askedId } from '../../../../../shared/operate/requests/asked-id.ts';
import { bookedRequest } from '../../../../../shared/operate/requests/find-request.ts';
import { requestSteps } from '../../../../../shared/operate/requests/request-view.ts';
import { when } from '../../layout/times.ts';
import { actionButton } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { html, nothing } from '../../layout/markup.ts';
import { notice } from '../../layout/notice.ts';
import { badge, stepList } from '../../layout/table.ts';
import type { Visit } from '../../visit/visit.ts';
import { endBadge } from './request-table.ts';

export async function oneRequest(visit: Visit): Promise<Page> {
  const written = visit.part('id');
  const above = [['requests', 'Requests']] as const;
  const isPart = !written.startsWith('grant#') && !askedId(written).isWhole;
  const found = isPart ? undefined : await bookedRequest(visit.ports, written);
  if (!found)
    return {
      title: written,
      section: 'requests',
      above,
      body: html`${notice('warning', isPart ? partOfId : notInLedger)}
        <p>The log has a line of each call that was refused:</p>
        ${actionButton(`requests/${encodeURIComponent(written)}/log`, visit.identity.formToken, 'What the log says')}`,
      status: 404,
    };
  const { row, late, problem } = found;
  const isRefundable =
    row.kind !== 'grant' && row.charge + (late?.charge ?? 0n) > 0n && !visit.options.readOnly;
  return {
    title: row.id,
    section: 'requests',
    above: [...above, [`requests?account=${encodeURIComponent(row.account)}`, row.account]],
    actions: html`${actionButton(`requests/${encodeURIComponent(row.id)}/log`, visit.identity.formToken, 'What the log says')}${isRefundable ? html`<a class="button" href="requests/${encodeURIComponent(row.id)}/refund">Refund</a>` : nothing}`,
    body: html`${problem === undefined ? nothing : notice('bad', `The charge does not follow from the row: ${problem}`)}
      <p>
        ${row.kind === 'grant' ? badge('grant') : endBadge(row)} of
        <a href="customers/${encodeURIComponent(row.account)}">${row.account}</a>,
        ${when(ledgerTimeMs(row), visit.nowMs)}
      </p>
      ${stepList(requestSteps(row, late))}`,
  };
}

const notInLedger =
  'The ledger has no row of this id. The call was refused before it cost anything, is still under way, or ended within the last seconds.';
const partOfId = 'This is the beginning of an id, which the ledger does not find.';
