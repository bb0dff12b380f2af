/** A key that strangers may have: refused at once, replaced, and what it was used for, as `key leaked` does it. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import {
  viewKeyUse,
  type KeyUse,
  carryOutLeakedKey,
  planLeakedKey,
  type LeakedKeyMade,
  type LeakedKeyPlan,
  leakedMessage,
  leakedRefund,
  type LeakedRefund,
} from '../../../../shared/operate/keys/leaked-key.ts';
import { findKey } from '../../../../shared/operate/keys/list-keys.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { figureColumns, table } from '../layout/table.ts';
import { counted, grouped } from '../layout/figures.ts';
import type { Tried } from '../layout/form.ts';
import { ownForm, ofPlan, type Outcome, type Proposal, type Routes, type Visit } from '../visit/visit.ts';
import type { Page } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';

const hourMs = 3_600_000;
/** Ten years. */
const hoursMax = 87_600;

export function leakedKeyPages(routes: Routes): void {
  routes.form('/keys/:hash/leaked', { page: leakedPage, propose: proposeLeaked });
}

const leakedPage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const { name, hint } = await findKey(visit.ports, visit.part('hash'));
  return {
    title: `Leaked: ${hint}`,
    section: 'keys',
    above: [['keys', 'Keys']],
    body: html`<p class="lead">
        ${name} is refused within 30 seconds, a new key with the same rights is made, and its calls are listed
        with a message for the customer.
      </p>
      ${ownForm(visit, {
        fields: [
          {
            name: 'hours',
            label: 'Its use of the last hours',
            value: '24',
            input: 'numeric',
            help: 'How long strangers may have had it.',
          },
          {
            name: 'successor',
            label: 'New key',
            kind: 'choice',
            value: 'yes',
            choices: [
              ['yes', 'make one with the same rights'],
              ['no', 'make none'],
            ],
          },
        ],
        verb: 'Go on',
        cancel: 'keys',
        tried,
      })}`,
  };
};

async function proposeLeaked({ ports, part, field, nowMs }: Visit): Promise<Proposal> {
  const hours = Number(field('hours'));
  // Refused here: after the key is replaced, a time that is none would lose the new one.
  if (!(hours > 0 && hours <= hoursMax))
    throw usageFailure(
      `hours: found ${field('hours') || 'nothing'}, wanted a number above 0, at most ${grouped(hoursMax)}`,
    );
  const alone = field('successor') === 'no';
  const plan = await planLeakedKey(ports, { written: part('hash'), sinceMs: nowMs - hours * hourMs, alone });
  const path = `customers/${encodeURIComponent(plan.account)}`;
  const { earlier } = plan;
  return {
    ...ofPlan(plan, {
      title: `Leaked: ${plan.hint}`,
      back: path,
      verb: earlier ? 'Show its use' : 'Refuse it',
    }),
    grave: !earlier,
    async carryOut(onProgress) {
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
        lines: linesOf(plan, made),
        next: [
          [path, `To ${plan.account}`],
          ...(refund ? [[grantPath(refund), 'Refund what it spent'] as const] : []),
        ],
        ...shownOf(plan, made),
      };
    },
  };
}

/** The form of a grant, with what it is to have. Its amount may be less: the operator chooses. */
const grantPath = ({ account, ...fields }: LeakedRefund): string =>
  `customers/${encodeURIComponent(account)}/grant?${new URLSearchParams({ ...fields }).toString()}`;

const linesOf = ({ name, earlier }: LeakedKeyPlan, { use }: LeakedKeyMade): string[] => [
  earlier
    ? `${name} was refused before.`
    : `${name} is refused within 30 seconds. Calls that still run, and those until then, are not in its use: look again before you refund.`,
  ...(use
    ? [
        `Since ${isoTime(use.sinceMs)} it made ${counted(use.sum.counts.calls ?? 0, 'call')} for ${formatYuan(use.sum.amounts.charged ?? 0n)} yuan, of which ${formatYuan(use.refunded)} were refunded.`,
      ]
    : []),
];

function shownOf(
  plan: LeakedKeyPlan,
  { successor, use, problem }: LeakedKeyMade,
): Pick<Outcome, 'warnings' | 'details' | 'secret' | 'message'> {
  const message = leakedMessage({ plan, secretKey: successor?.secretKey, use });
  return {
    warnings: use ? use.problems : [`Its use could not be read: ${problem}. Say once more that it leaked.`],
    details: use ? useTable(use) : nothing,
    ...(successor ? { secret: { name: 'The new key', value: successor.secretKey, message } } : { message }),
  };
}

const figures = figureColumns<KeyUse['hours'][number]>((row) => row.figures);

const useTable = ({ hours }: KeyUse): Markup =>
  table({
    caption: 'What the key was used for, by hour and model',
    rows: hours,
    empty: 'It called nothing in this time.',
    columns: [
      { title: 'Hour, UTC', isHead: true, show: ({ hour }) => hour.slice(0, 16).replace('T', ' ') },
      { title: 'Model', show: ({ model }) => model },
      figures.calls,
      figures.failed,
      figures.input,
      figures.output,
      figures.charged,
    ],
  });
