/** Versions: what was published when, what differs, and the way back. */
import { planRollback } from '../../../../shared/operate/config/write-rows.ts';
import { diffConfig } from '../../../../shared/operate/config/check-rows.ts';
import { publishedMax, publishedVersions } from '../../../../shared/operate/config/versions.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { when } from '../layout/figures.ts';
import { actionButton, search, type Tried } from '../layout/form.ts';
import { ownForm, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import { type Page, command, emptyState } from '../layout/frame.ts';
import { html, nothing } from '../layout/markup.ts';
import { badge, table } from '../layout/table.ts';
import { differenceTable, rowProposal } from '../visit/row-proposal.ts';

export function versionPages(routes: Routes): void {
  routes.page('/versions', list);
  routes.page('/versions/diff', diff);
  routes.form('/versions/:version/rollback', { page: rollbackPage, propose: proposeRollback });
}

async function list(visit: Visit): Promise<Page> {
  const { options, identity, nowMs } = visit;
  const { served, versions } = await publishedVersions(visit.ports);
  return {
    title: 'Versions',
    section: 'versions',
    actions: html`<a class="button" href="versions/diff">Edits not published</a>`,
    body: html`<p class="lead">
        Each edit of channels, prices, plans and settings is published as a version.
      </p>
      ${table({
        caption: 'Versions',
        rows: versions,
        empty: emptyState('Nothing was published', 'The first valid row is published within seconds.'),
        columns: [
          {
            title: 'Version',
            isHead: true,
            show: ({ version }) => version,
            sortBy: ({ version }) => version,
          },
          {
            title: 'Published',
            show: ({ publishedAt }) => when(publishedAt * 1000, nowMs),
            sortBy: ({ publishedAt }) => publishedAt,
          },
          { title: 'State', show: ({ version }) => (version === served ? badge('serves', 'good') : nothing) },
          {
            title: 'What changed',
            show: ({ version }) =>
              version > 1 && versions.some((each) => each.version === version - 1)
                ? html`<a href="versions/diff?from=${version - 1}&to=${version}"
                    >compare with ${version - 1}</a
                  >`
                : '–',
          },
          ...(options.readOnly
            ? []
            : [
                {
                  title: 'Actions',
                  isActions: true,
                  show: ({ version }: { version: number }) =>
                    version === served
                      ? nothing
                      : actionButton(`versions/${version}/rollback`, identity.formToken, 'Roll back to it'),
                },
              ]),
        ],
      })}
      ${
        versions.length < publishedMax
          ? nothing
          : html`<p class="soft">The newest ${publishedMax}. Older ones:</p>
              ${command('relay-ops version list --limit 1000')}`
      }`,
  };
}

/** Undefined: nothing, or no number was typed. */
const numberIn = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

async function diff({ ports, query }: Visit): Promise<Page> {
  const [from, to] = [numberIn(query('from')), numberIn(query('to'))];
  const { differences, ...names } = await diffConfig(ports, { from, to });
  return {
    title: `${names.from} and ${names.to}`,
    section: 'versions',
    above: [['versions', 'Versions']],
    body: html`${search({
      action: 'versions/diff',
      verb: 'Compare',
      fields: [
        {
          name: 'from',
          label: 'From version',
          value: query('from'),
          help: 'Empty: the newest, with the tables.',
        },
        { name: 'to', label: 'To version', value: query('to'), help: 'Empty: the newest.' },
      ],
    })}
    ${
      differences.length === 0
        ? html`<div class="empty">
            ${emptyState('No difference', `${names.from} and ${names.to} have the same rows.`)}
          </div>`
        : differenceTable(differences)
    }`,
  };
}

const rollbackPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: `Roll back to version ${visit.part('version')}`,
  section: 'versions',
  above: [['versions', 'Versions']],
  body: ownForm(visit, {
    fields: [],
    verb: 'Go on',
    cancel: 'versions',
    tried,
  }),
});

async function proposeRollback(visit: Visit): Promise<Proposal> {
  const version = numberIn(visit.part('version'));
  if (version === undefined) throw usageFailure('there is no such version');
  const plan = await planRollback(visit.ports, version);
  return {
    ...(await rowProposal(visit, { plan, title: `Roll back to version ${version}`, back: 'versions' })),
    verb: 'Roll back',
    grave: true,
  };
}
