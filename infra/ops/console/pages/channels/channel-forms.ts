/** A channel's row edited, and a new one: checked as the relay does before anything is written. */
import { listChannels } from '../../../../../shared/operate/channels/list-channels.ts';
import { rowMark } from '../../../../../shared/operate/config/row-mark.ts';
import { planSetRow } from '../../../../../shared/operate/config/set-row.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import { marksElsewhere } from '../../layout/field-marks.ts';
import type { Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { warnings } from '../../layout/notice.ts';
import type { Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import {
  attributesIn,
  channelPath,
  channelRow,
  fieldsOf,
  marksOf,
  ownFields,
  triedWithoutSecret,
} from './channel-fields.ts';
import { rowProposal } from '../../visit/row-proposal.ts';
import { otherAttributes, removed, typedJson } from '../../visit/typed-fields.ts';

export function channelFormPages(routes: Routes): void {
  routes.form('/channels-new', { page: newPage, propose: proposeNew });
  routes.form('/channels/:id/edit', { page: editPage, propose: proposeEdit });
}

async function editPage(visit: Visit, tried?: Tried): Promise<Page> {
  const id = visit.part('id');
  const [row, channels] = await Promise.all([channelRow(visit, id), listChannels(visit.ports)]);
  if (!row) throw usageFailure(`there is no channel ${id}`);
  const channel = channels.find((each) => each.id === id);
  const fields = fieldsOf(row, channel);
  return {
    title: `Edit ${id}`,
    section: 'channels',
    above: [
      ['channels', 'Channels'],
      [channelPath(id), id],
    ],
    body: html`${warnings(marksElsewhere(marksOf(row, channel), fields))}
    ${ownForm(visit, {
      fields: [...fields, { name: 'seen', label: '', kind: 'hidden', value: rowMark(row) }],
      verb: 'Check and go on',
      cancel: channelPath(id),
      tried: triedWithoutSecret(tried),
    })}`,
  };
}

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const id = visit.part('id');
  const row = await channelRow(visit, id);
  const channels = await listChannels(visit.ports);
  const isBad = channels.find((each) => each.id === id)?.state === 'bad';
  const others = typedJson('others', visit.field('others'));
  const isKept = isBad && visit.field('others') === '';
  const plan = await planSetRow(visit.ports, {
    table: 'channels',
    key: id,
    attributes: {
      ...(isKept ? {} : { ...removed(otherAttributes(row ?? {}, ownFields)), ...others }),
      ...attributesIn(visit, isBad),
    },
    seen: visit.field('seen'),
    isNew: false,
  });
  return rowProposal(visit, { plan, title: `Edit ${id}`, back: channelPath(id) });
}

const newPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'New channel',
  section: 'channels',
  above: [['channels', 'Channels']],
  body: html`<p class="lead">
      Prices first: until a model has one, a relay that refuses unpriced models refuses its calls.
    </p>
    ${ownForm(visit, {
      fields: [
        {
          name: 'id',
          label: 'Id',
          required: true,
          placeholder: 'vendor-1',
          help: 'Names it in logs. It cannot be changed later.',
        },
        ...fieldsOf({ state: true }, undefined),
      ],
      verb: 'Check and go on',
      cancel: 'channels',
      tried: triedWithoutSecret(tried),
    })}`,
});

async function proposeNew(visit: Visit): Promise<Proposal> {
  const id = visit.field('id');
  if (id === '') throw usageFailure('id: found nothing, wanted a name');
  const attributes = Object.fromEntries(
    Object.entries({ ...typedJson('others', visit.field('others')), ...attributesIn(visit, false) }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  const plan = await planSetRow(visit.ports, { table: 'channels', key: id, attributes, isNew: true });
  return rowProposal(visit, { plan, title: `New channel ${id}`, back: 'channels' });
}
