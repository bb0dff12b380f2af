/** Calls and switches that try a channel: test, probe, on and off. */
import { carryOutProbe, planProbe } from '../../../../../shared/operate/channels/probe/probe-channel.ts';
import { carryOutChannelTest, planChannelTest } from '../../../../../shared/operate/channels/test-channel.ts';
import { listChannels } from '../../../../../shared/operate/channels/list-channels.ts';
import { planSwitchChannel } from '../../../../../shared/operate/channels/switch-channel.ts';
import { Failure } from '../../../../../shared/operate/operator-failure.ts';
import { milliseconds } from '../../layout/figures.ts';
import type { Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { channelPath } from './channel-fields.ts';
import { rowProposal } from '../../visit/row-proposal.ts';

export function channelActionPages(routes: Routes): void {
  routes.form('/channels/:id/test', { page: askPage('Test'), propose: proposeTest });
  routes.form('/channels/:id/probe', { page: askPage('Probe'), propose: proposeProbe });
  routes.form('/channels/:id/switch', { page: askPage('Switch'), propose: proposeSwitch });
}

/** For a form that was refused: the button alone has no page. */
const askPage =
  (verb: string) =>
  async (visit: Visit, tried?: Tried): Promise<Page> => {
    const id = visit.part('id');
    return {
      title: `${verb} ${id}`,
      section: 'channels',
      above: [
        ['channels', 'Channels'],
        [channelPath(id), id],
      ],
      body: ownForm(visit, {
        fields: [],
        verb: 'Go on',
        cancel: channelPath(id),
        tried,
      }),
    };
  };

async function proposeTest({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planChannelTest(ports, { id });
  return {
    ...ofPlan(plan, { title: `Test ${id}`, back: channelPath(id), verb: 'Send it' }),
    effect: [...plan.effect, 'One small real request. The upstream charges for it; no row is written.'],
    async carryOut() {
      const { status, elapsedMs, answer, body } = await carryOutChannelTest(ports, plan);
      const said = `Status ${status} after ${milliseconds(elapsedMs)}.`;
      if (answer === undefined) throw new Failure(`${said} No answer came back: ${body || 'an empty body'}`);
      return { lines: [said, `${answer.model} answered: ${answer.text || `nothing (${answer.ending})`}`] };
    },
  };
}

async function proposeProbe({ ports, part }: Visit): Promise<Proposal> {
  const id = part('id');
  const plan = await planProbe(ports, { id });
  return {
    ...ofPlan(plan, { title: `Probe ${id}`, back: channelPath(id), verb: 'Send them' }),
    async carryOut(onProgress) {
      onProgress('a dozen small calls to the upstream');
      const { can, sent, warnings: said } = await carryOutProbe(ports, plan);
      return {
        lines: [`${sent} calls were sent. What they show is written as _can.`],
        warnings: said,
        details: html`<pre class="command"><code>${JSON.stringify(can, null, 2)}</code></pre>`,
      };
    },
  };
}

async function proposeSwitch(visit: Visit): Promise<Proposal> {
  const id = visit.part('id');
  const channel = (await listChannels(visit.ports)).find((each) => each.id === id);
  // One whose row has a problem can be stopped alone: its last good version serves.
  const on = channel?.state === 'off';
  const plan = await planSwitchChannel(visit.ports, { id, on });
  return {
    ...(await rowProposal(visit, {
      plan,
      title: `Switch ${id} ${on ? 'on' : 'off'}`,
      back: channelPath(id),
    })),
    verb: on ? 'Switch it on' : 'Switch it off',
    grave: !on,
  };
}
