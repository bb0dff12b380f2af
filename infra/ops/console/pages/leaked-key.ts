/** A key that strangers may have: refused at once, replaced, and what it was used for, as `key leaked` does it. */
import { formatYuan } from '../../../../shared/billing/price.ts';
import { findKey } from '../../../../shared/operate/keys/list-keys.ts';
import {
  viewKeyUse,
  carryOutLeakedKey,
  planLeakedKey,
  leakedMessage,
  leakedRefund,
  type KeyUse,
  type LeakedKeyMade,
  type LeakedKeyPlan,
  type LeakedRefund,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { nothing, type Markup } from '../../markup.ts';
import { counted, grouped } from '../layout/figures.ts';
import { choiceField } from '../layout/form.ts';
import { lead } from '../layout/frame.ts';
import { column, figureColumns, head, table } from '../layout/table.ts';
import {
  customerPath,
  formPage,
  proposed,
  pathWith,
  type Outcome,
  type Proposal,
  type Routes,
  type Visit,
} from '../visit/visit.ts';

const hourMs = 3_600_000;
const hoursMax = 87_600;

export function leakedKeyPages(routes: Routes): void {
  routes.form('/keys/:hash/leaked', { page: leakedPage, propose: proposeLeaked });
}

const leakedPage = formPage(async ({ ports, part }) => {
  const { name, hint } = await findKey(ports, part('hash'));
  return {
    title: `Leaked: ${hint}`,
    intro: lead(
      `${name} is refused within 30 seconds, a new key with the same rights is made, and its calls are listed with a message for the customer.`,
    ),
    fields: [
      {
        name: 'hours',
        label: 'Its use of the last hours',
        value: '24',
        input: 'numeric',
        help: 'How long strangers may have had it.',
      },
      choiceField('successor', 'New key', { yes: 'make one with the same rights', no: 'make none' }),
    ],
    cancel: 'keys',
  };
});

async function proposeLeaked({ ports, part, field, nowMs }: Visit): Promise<Proposal> {
  const hours = Number(field('hours'));
  // Refused here: after the key is replaced, a time that is none would lose the new one.
  if (!(hours > 0 && hours <= hoursMax))
    throw usageFailure(
      `hours: found ${field('hours') || 'nothing'}, wanted a number above 0, at most ${grouped(hoursMax)}`,
    );
  const alone = field('successor') === 'no';
  const plan = await planLeakedKey(ports, { written: part('hash'), sinceMs: nowMs - hours * hourMs, alone });
  const path = customerPath(plan.account);
  const { earlier } = plan;
  const verb = earlier ? 'Show its use' : 'Refuse it';
  return proposed(
    plan,
    { title: `Leaked: ${plan.hint}`, back: path, verb, grave: !earlier },
    async (onProgress) => {
      let read = 0;
      const onRead = (count: number): void => {
        read += count;
        onProgress(`it is refused; ${grouped(read)} ledger rows read for its use`);
      };
      const made: LeakedKeyMade = earlier
        ? { successor: undefined, use: await viewKeyUse(ports, plan.use, onRead) }
        : await carryOutLeakedKey(ports, plan, { onProgress: onRead });
      const refund = leakedRefund({ plan, use: made.use });
      return {
        ...shownOf(plan, made),
        next: [
          [path, `To ${plan.account}`],
          ...(refund ? [[grantPath(refund), 'Refund what it spent'] as const] : []),
        ],
      };
    },
  );
}

/** The form of a grant, with what it is to have. Its amount may be less: the operator chooses. */
const grantPath = ({ account, ...fields }: LeakedRefund): string =>
  pathWith(`${customerPath(account)}/grant`, { ...fields });

function shownOf(plan: LeakedKeyPlan, { successor, use, problem }: LeakedKeyMade): Outcome {
  const { name, earlier } = plan;
  const message = leakedMessage({ plan, secretKey: successor?.secretKey, use });
  return {
    lines: [
      earlier
        ? `${name} was refused before.`
        : `${name} is refused within 30 seconds. Calls that still run, and those until then, are not in its use: look again before you refund.`,
      ...(use
        ? [
            `Since ${isoTime(use.sinceMs)} it made ${counted(use.sum.counts.calls ?? 0, 'call')} for ${formatYuan(use.sum.amounts.charged ?? 0n)} yuan, of which ${formatYuan(use.refunded)} were refunded.`,
          ]
        : []),
    ],
    warnings: use ? use.problems : [`Its use could not be read: ${problem}. Say once more that it leaked.`],
    details: use ? useTable(use) : nothing,
    ...(successor ? { secret: { name: 'The new key', value: successor.secretKey, message } } : { message }),
  };
}

type Hour = KeyUse['hours'][number];

const useTable = ({ hours }: KeyUse): Markup =>
  table(hours, {
    caption: 'What the key was used for, by hour and model',
    empty: 'It called nothing in this time.',
    columns: [
      head('Hour, UTC', ({ hour }) => hour.slice(0, 16).replace('T', ' ')),
      column('Model', ({ model }) => model),
      ...figureColumns<Hour>(({ figures }) => figures, 'calls', 'failed', 'input', 'output', 'charged'),
    ],
  });
