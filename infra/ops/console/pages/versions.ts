/** Lists published versions, compares them, and rolls back. */
import { planRollback } from '../../../../shared/operate/config/write-rows.ts';
import { diffConfig } from '../../../../shared/operate/config/check-rows.ts';
import { publishedMax, listPublishedVersions } from '../../../../shared/operate/config/versions.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { html, nothing } from '../../markup.ts';
import { when, writer } from '../layout/figures.ts';
import { actionButton, search } from '../layout/form.ts';
import { command, emptyBox, emptyState, lead, type Page } from '../layout/frame.ts';
import { actions, badge, column, cut, head, table } from '../layout/table.ts';
import { differenceTable, rowProposal } from '../visit/row-proposal.ts';
import { formPage, unlessReading, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

export function versionPages(routes: Routes): void {
  routes.page('/versions', list);
  routes.page('/versions/diff', diff);
  routes.form('/versions/:version/rollback', { page: rollbackPage, propose: proposeRollback });
}

async function list({ ports, options, identity, nowMs }: Visit): Promise<Page> {
  const { served, versions } = await listPublishedVersions(ports);
  type Version = (typeof versions)[number];
  return {
    title: 'Versions',
    actions: html`<a class="button" href="versions/diff">Unpublished changes</a>`,
    body: html`${lead('Every change to channels, prices, plans and settings is published as a version.')}
    ${table(versions, {
      caption: 'Versions',
      empty: emptyState('No versions yet', 'The first valid row is published within seconds.'),
      columns: [
        head('Version', ({ version }) => version, { sortBy: ({ version }) => version }),
        column('Published', ({ publishedAt }) => when(publishedAt * 1000, nowMs), {
          sortBy: ({ publishedAt }) => publishedAt,
        }),
        column('State', ({ version }) => (version === served ? badge('current', 'good') : nothing)),
        column('What changed', ({ changed = [] }) => cut(changed.join('; ') || '–')),
        column('By', ({ by = [] }) => by.map((name) => [writer(name), ' '])),
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
                  : actionButton(`versions/${version}/rollback`, identity.formToken, 'Roll back'),
              ),
            ]),
      ],
    })}
    ${
      versions.length >= publishedMax &&
      html`<p class="soft">Showing the newest ${publishedMax}. To list older versions:</p>
        ${command(ports.target, 'version list', '--limit 1000')}`
    }`,
  };
}

const numberIn = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

async function diff(visit: Visit): Promise<Page> {
  const { ports, identity, query } = visit;
  const [from, to] = [query('from'), query('to')];
  const { differences, ...names } = await diffConfig(ports, { from: numberIn(from), to: numberIn(to) });
  const back = `versions/${numberIn(from)}/rollback`;
  return {
    title: `${names.from} and ${names.to}`,
    above: [],
    actions:
      numberIn(from) !== undefined &&
      unlessReading(visit, actionButton(back, identity.formToken, `Roll back to ${from}`)),
    body: html`${search({
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
        ? emptyBox('No differences', `${names.from} and ${names.to} have the same rows.`)
        : differenceTable(differences)
    }`,
  };
}

const rollbackPage = formPage(({ part }) => ({
  title: `Roll back to version ${part('version')}`,
  cancel: 'versions',
}));

async function proposeRollback(visit: Visit): Promise<Proposal> {
  const version = numberIn(visit.part('version'));
  if (version === undefined) throw usageFailure('this version does not exist');
  const plan = await planRollback(visit.ports, version);
  const title = `Roll back to version ${version}`;
  return rowProposal(visit, plan, { title, back: 'versions', verb: 'Roll back', grave: true });
}
