/** A billing rule edited, and a new one: checked as the relay does, and compared with the last days before it is written. */
import { refuseChanged, rowMark } from '../../../../../shared/operate/config/row-mark.ts';
import { planSetRow } from '../../../../../shared/operate/config/set-row.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import {
  nextId,
  planAnnouncePrice,
  planSplitRule,
} from '../../../../../shared/operate/prices/announce-price.ts';
import type { RawRow } from '../../../../../shared/operate/row-tables.ts';
import { marksElsewhere } from '../../layout/field-marks.ts';
import type { Field, Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { warnings } from '../../layout/notice.ts';
import type { Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { rowProposal } from '../../visit/row-proposal.ts';
import { otherAttributes, removed, typedNumber } from '../../visit/typed-fields.ts';
import { attributesIn, fieldsOf, marksOf } from './charge-fields.ts';

export function chargeFormPages(routes: Routes): void {
  routes.form('/charges-new', { page: newPage, propose: proposeNew });
  routes.form('/charges/:id', { page: editPage, propose: proposeEdit });
}

async function rowOf({ ports }: Visit, id: number): Promise<RawRow> {
  const rows = await ports.tables.scan('charges');
  const row = rows.find((each) => each['id'] === id);
  if (!row) throw usageFailure(`there is no rule ${id}`);
  return row;
}

async function editPage(visit: Visit, tried?: Tried): Promise<Page> {
  const id = Number(visit.part('id'));
  const row = await rowOf(visit, id);
  const fields = [...fieldsOf(row), ...onlyField(row)];
  return {
    title: `Rule ${id}`,
    section: 'charges',
    above: [['charges', 'Prices']],
    body: html`${warnings(marksElsewhere(marksOf(row), fields))}
    ${ownForm(visit, {
      fields: [...fields, { name: 'seen', label: '', kind: 'hidden', value: rowMark(row) }],
      verb: 'Check and go on',
      cancel: 'charges',
      tried,
    })}`,
  };
}

/** Of a rule with several models one can be given other prices in the same step. */
function onlyField({ models }: RawRow): Field[] {
  const names = models instanceof Set || Array.isArray(models) ? [...models].map(String) : [];
  if (names.length < 2) return [];
  const choices = [
    ['', 'all models of the rule'] as const,
    ...names.map((name) => [name, `${name} alone`] as const),
  ];
  return [
    {
      name: 'only',
      label: 'For',
      kind: 'choice',
      value: '',
      choices,
      help: 'One alone: it gets a rule of its own with these prices, and the others keep theirs.',
    },
  ];
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, nowMs, field } = visit;
  const id = Number(visit.part('id'));
  const row = await rowOf(visit, id);
  const attributes = { ...removed(otherAttributes(row, [])), ...attributesIn(visit) };
  const isLater = (from: unknown): boolean => typeof from === 'string' && Date.parse(from) > nowMs;
  const [from, only] = [field('from'), field('only')];
  if (isLater(from) && !isLater(row['from'])) {
    refuseChanged(`rule ${id}`, row, field('seen'));
    const own = only === '' ? attributes : { ...attributes, models: [only] };
    const { plan } = await planAnnouncePrice(ports, { id, from, attributes: own });
    return rowProposal(visit, { plan, title: `Rule ${id}, from ${from}`, back: 'charges' });
  }
  if (only !== '') {
    const plan = await planSplitRule(ports, { id, model: only, attributes, seen: field('seen') });
    return rowProposal(visit, { plan, title: `Rule ${id}, ${only} alone`, back: 'charges' });
  }
  const edit = { table: 'charges', key: id, attributes, seen: field('seen'), isNew: false } as const;
  const plan = await planSetRow(ports, edit);
  return rowProposal(visit, { plan, title: `Rule ${id}`, back: 'charges' });
}

const newPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'New rule',
  section: 'charges',
  above: [['charges', 'Prices']],
  body: ownForm(visit, {
    fields: [
      {
        name: 'id',
        label: 'Number',
        required: true,
        input: 'numeric',
        value: String(nextId(await visit.ports.tables.scan('charges'))),
        help: 'Of two rules that begin together, the lower number prices a model.',
      },
      ...fieldsOf({ type: 'token-billing' }),
    ],
    verb: 'Check and go on',
    cancel: 'charges',
    tried,
  }),
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const id = typedNumber(visit.field('id'));
  if (typeof id !== 'number')
    throw usageFailure(`id: found ${visit.field('id') || 'nothing'}, wanted a whole number`);
  const attributes = Object.fromEntries(
    Object.entries(attributesIn(visit)).filter(([, value]) => value !== undefined),
  );
  const plan = await planSetRow(visit.ports, { table: 'charges', key: id, attributes, isNew: true });
  return rowProposal(visit, { plan, title: `New rule ${id}`, back: 'charges' });
}
