/** What is done to a key: checked, rotated, disabled. */
import { carryOutRotateKey, planRotateKey } from '../../../../../shared/operate/keys/rotate-key.ts';
import { checkKey } from '../../../../../shared/operate/keys/check-key.ts';
import { planDisableKey } from '../../../../../shared/operate/keys/disable-key.ts';
import { findKey } from '../../../../../shared/operate/keys/find-key.ts';
import { carryOutWrites } from '../../../../../shared/operate/row-writes.ts';
import type { Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { html } from '../../layout/markup.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';

export function keyFormPages(routes: Routes): void {
  routes.form('/keys/check', { page: checkPage, propose: proposeCheck, reads: true });
  routes.form('/keys/:hash/disable', { page: disablePage, propose: proposeDisable });
  routes.form('/keys/:hash/rotate', { page: rotatePage, propose: proposeRotate });
}

const disablePage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const { name, hint } = await findKey(visit.ports, visit.part('hash'));
  return {
    title: `Disable ${hint}`,
    section: 'keys',
    above: [['keys', 'Keys']],
    body: html`<p>${name}: calls with it are refused within 30 seconds. Its row stays.</p>
      ${ownForm(visit, {
        fields: [],
        verb: 'Go on',
        cancel: 'keys',
        tried,
      })}`,
  };
};

async function proposeDisable({ ports, part }: Visit): Promise<Proposal> {
  const plan = await planDisableKey(ports, part('hash'));
  return {
    ...ofPlan(plan, { title: 'Disable a key', back: 'keys', verb: 'Disable it', grave: true }),
    async carryOut() {
      await carryOutWrites(ports, plan);
      return { lines: [`${plan.name} is refused within 30 seconds.`] };
    },
  };
}

const rotatePage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const { name, hint } = await findKey(visit.ports, visit.part('hash'));
  return {
    title: `Rotate ${hint}`,
    section: 'keys',
    above: [['keys', 'Keys']],
    body: html`<p>A new key with the same rights; ${name} works on for a while.</p>
      ${ownForm(visit, {
        fields: [
          {
            name: 'grace',
            label: 'The old key works for, hours',
            value: '24',
            input: 'decimal',
            help: '0 refuses it at once.',
          },
        ],
        verb: 'Go on',
        cancel: 'keys',
        tried,
      })}`,
  };
};

async function proposeRotate({ ports, part, field }: Visit): Promise<Proposal> {
  const graceHours = field('grace') === '' ? Number.NaN : Number(field('grace'));
  const plan = await planRotateKey(ports, { written: part('hash'), graceHours });
  return {
    ...ofPlan(plan, { title: 'Rotate a key', back: 'keys', verb: 'Make the new key' }),
    grave: plan.questions.length > 0,
    async carryOut() {
      const made = await carryOutRotateKey(ports, plan);
      return {
        lines: [
          `${made.hint} is made for ${plan.account}.`,
          `${plan.oldName} works until ${plan.oldWorksUntil}.`,
        ],
        secret: { name: 'The new key', value: made.secretKey },
      };
    },
  };
}

const checkPage = async (visit: Visit, tried?: Tried): Promise<Page> => ({
  title: 'Check a key',
  section: 'keys',
  above: [['keys', 'Keys']],
  body: html`<p class="lead">Whether the relay accepts a key, and why. It is hashed, and kept nowhere.</p>
    ${ownForm(visit, {
      fields: [{ name: 'key', label: 'The whole key', required: true, placeholder: 'sk-...' }],
      verb: 'Check it',
      cancel: 'keys',
      // What was typed is a secret, so it is not shown again.
      tried: tried && { ...tried, fields: {} },
    })}`,
});

async function proposeCheck({ ports, field }: Visit): Promise<Proposal> {
  const { state, why, name } = await checkKey(ports, field('key'));
  const line = `${name ?? 'This text'}: ${state === 'usable' ? 'the relay accepts it' : `refused (${state})`}. ${why}`;
  return {
    title: 'Check a key',
    back: 'keys',
    effect: [],
    questions: [],
    verb: 'Check it',
    reads: true,
    carryOut: async () => ({ lines: [line] }),
  };
}
