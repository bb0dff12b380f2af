/** The edit of a row as a proposal, compared with what was called in the last days. */
import type { ConfigPlan } from '../../../../shared/operate/config/apply-rows.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import { whatIf } from '../../../../shared/operate/what-if/what-if.ts';
import { bytes, counted } from '../layout/figures.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import { notice } from '../layout/notice.ts';
import { differenceTable } from './difference-table.ts';
import { effectTables } from './effect-tables.ts';
import { ofWrites, type Proposal } from './proposals.ts';
import type { Visit } from './visit.ts';

export interface RowProposal {
  plan: ConfigPlan;
  title: string;
  back: string;
}

/** Compares the edit with what was called in the last days before it is written. */
export async function rowProposal({ ports }: Visit, { plan, title, back }: RowProposal): Promise<Proposal> {
  const proposal = ofWrites(plan, { title, back, verb: 'Write this' });
  const isCompared = proposal.refusal === undefined;
  return {
    ...proposal,
    details: html`${differenceTable(plan.differences)} ${isCompared ? await compared(ports, plan) : nothing}`,
    async carryOut() {
      const made = await carryOutWrites(ports, plan);
      if (made.length === 0) throw new Failure('nothing was written: somebody else was faster');
      return {
        lines: [
          `${made.length} ${made.length === 1 ? 'row is' : 'rows are'} written; live within 10 seconds.`,
        ],
      };
    },
  };
}

async function compared(ports: Visit['ports'], { edit }: ConfigPlan): Promise<Markup> {
  const before = ports.traffic();
  try {
    const effects = await whatIf(ports, edit);
    const after = ports.traffic();
    return html`${effectTables(effects)}
      <p class="soft">
        Compared by ${counted(after.requests - before.requests, 'request')},
        ${bytes(after.bytes - before.bytes)}.
      </p>`;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // An edit must not wait for its comparison.
    return notice('warning', `It could not be compared with the last days: ${error.message}`);
  }
}
