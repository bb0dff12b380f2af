/** What the log says of a request: candidates, refusals, times. A search that may take seconds, so it runs as work. */
import { explainRequest } from '../../../../../shared/operate/requests/explain-request.ts';
import { nextStep } from '../../../../../shared/operate/requests/next-step.ts';
import { storySteps } from '../../../../../shared/operate/requests/story-steps.ts';
import type { Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { nothing } from '../../layout/markup.ts';
import { stepList } from '../../layout/table.ts';
import type { Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';

export function logPages(routes: Routes): void {
  routes.form('/requests/:id/log', { page: logPage, propose: proposeLog, reads: true });
}

const logPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: `What the log says of ${visit.part('id')}`,
  section: 'requests',
  above: [['requests', 'Requests']],
  body: ownForm(visit, {
    fields: [],
    verb: 'Search it',
    tried,
  }),
});

async function proposeLog({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  return {
    title: `What the log says of ${id}`,
    back: `requests/${encodeURIComponent(id)}`,
    effect: [],
    questions: [],
    verb: 'Search it',
    reads: true,
    async carryOut(onProgress) {
      onProgress('the log is searched within 15 minutes of the time in the id');
      const { logged, note, found } = await explainRequest(ports, id);
      const next = logged && nextStep(logged);
      const steps = logged ? storySteps(logged) : [];
      return {
        lines: [
          logged ? 'The log has lines of this request.' : (note ?? 'The log has no line of it.'),
          ...(found ? [] : ['Nothing was charged: there is no ledger row.']),
          ...(next === undefined ? [] : [`Next: ${next}`]),
        ],
        details: steps.length === 0 ? nothing : stepList(steps),
      };
    },
  };
}
