/** Lists published versions, compares them, and rolls back. */
import { planRollback } from '../../../../shared/operate/config/write-rows.ts';
import { diffConfig } from '../../../../shared/operate/config/check-rows.ts';
import { publishedMax, listPublishedVersions } from '../../../../shared/operate/config/versions.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { describeChanges } from '../../fields/describe-changes.ts';
import { html, nothing } from '../../markup.ts';
import { renderAge, renderWriter } from '../layout/figures.ts';
import { renderActionButton, renderSearch } from '../layout/form.ts';
import { renderCommand, renderEmptyBox, renderEmptyState, renderLead, type Page } from '../layout/frame.ts';
import { actions, renderBadge, column, renderCut, head, renderTable } from '../layout/table.ts';
import { renderChanges, proposeRowEdit } from '../visit/row-proposal.ts';
import { buildFormPage, hideFromReaders, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

export function addVersionPages(routes: Routes): void {
  routes.page('/versions', renderVersions);
  routes.page('/versions/diff', renderVersionDiff);
  routes.form('/versions/:version/rollback', { page: rollbackPage, propose: proposeRollback });
}

async function renderVersions({ ports, options, identity, nowMs }: Visit): Promise<Page> {
  const { served, versions } = await listPublishedVersions(ports);
  type Version = (typeof versions)[number];
  return {
    title: 'Versions',
    actions: html`<a class="button" href="versions/diff">Unpublished changes</a>`,
    body: html`${renderLead('Every change to channels, prices, plans and settings is published as a version.')}
    ${renderTable(versions, {
      caption: 'Versions',
      empty: renderEmptyState('No versions yet', 'The first valid row is published within seconds.'),
      columns: [
        head('Version', ({ version }) => version, { sortBy: ({ version }) => version }),
        column('Published', ({ publishedAt }) => renderAge(publishedAt * 1000, nowMs), {
          sortBy: ({ publishedAt }) => publishedAt,
        }),
        column('State', ({ version }) => (version === served ? renderBadge('current', 'good') : nothing)),
        column('What changed', ({ changed = [] }) => renderCut(changed.join('; ') || '–')),
        column('By', ({ by = [] }) => by.map((name) => [renderWriter(name), ' '])),
        column('Compare', ({ version }) => {
          const former = versions.find((each) => each.version < version)?.version;
          if (former === undefined) return '–';
          return html`<a href="versions/diff?from=${former}&to=${version}">Compare with ${former}</a>`;
        }),
        ...(options.readOnly
          ? []
          : [
              actions(({ version }: Version) =>
                version === served
                  ? nothing
                  : renderActionButton(`versions/${version}/rollback`, identity.formToken, 'Roll back'),
              ),
            ]),
      ],
    })}
    ${
      versions.length >= publishedMax &&
      html`<p class="soft">Showing the newest ${publishedMax}. To list older versions:</p>
        ${renderCommand(ports.target, 'version list', '--limit 1000')}`
    }`,
  };
}

const parseNumber = (text: string): number | undefined =>
  /^\d{1,15}$/.test(text) ? Number(text) : undefined;

async function renderVersionDiff(visit: Visit): Promise<Page> {
  const { ports, identity, query } = visit;
  const [from, to] = [query('from'), query('to')];
  const { differences, edit, ...names } = await diffConfig(ports, {
    from: parseNumber(from),
    to: parseNumber(to),
  });
  const back = `versions/${parseNumber(from)}/rollback`;
  return {
    title: `${names.from} and ${names.to}`,
    above: [],
    actions:
      parseNumber(from) !== undefined &&
      hideFromReaders(visit, renderActionButton(back, identity.formToken, `Roll back to ${from}`)),
    body: html`${renderSearch({
      action: 'versions/diff',
      verb: 'Compare',
      fields: [
        {
          name: 'from',
          label: 'From version',
          value: from,
          help: 'Leave empty to compare the newest version with the tables.',
        },
        { name: 'to', label: 'To version', value: to, help: 'Leave empty for the newest.' },
      ],
    })}
    ${
      differences.length === 0
        ? renderEmptyBox('No differences', `${names.from} and ${names.to} have the same rows.`)
        : renderChanges(describeChanges(differences, ports.target, edit))
    }`,
  };
}

const rollbackPage = buildFormPage(({ parameter }) => ({
  title: `Roll back to version ${parameter('version')}`,
  cancel: 'versions',
}));

async function proposeRollback(visit: Visit): Promise<Proposal> {
  const version = parseNumber(visit.parameter('version'));
  if (version === undefined) throw usageFailure('this version does not exist');
  const plan = await planRollback(visit.ports, version);
  const title = `Roll back to version ${version}`;
  return proposeRowEdit(visit, plan, { title, back: 'versions', verb: 'Roll back', grave: true });
}
