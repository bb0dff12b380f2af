/** One run, or a few, of every command of the operators' tool, with what it needs to get through. */
import type { AccessRig } from './access-rig.ts';
import {
  chargedId,
  expiredId,
  keepResponse,
  loseCalls,
  lostClose,
  lostId,
  park,
  refundedId,
  stripe,
} from './seed.ts';

export interface Scenario {
  /** As in the table of policies. */
  command: string;
  words: string[] | ((rig: AccessRig) => string[]);
  input?: string;
  isLocal?: boolean;
  prepare?: (rig: AccessRig) => Promise<unknown>;
  /** Absent: 0. */
  code?: number;
}

/** In this order: those that change what others read come last. */
export const scenarios: Scenario[] = [
  { command: 'key list', words: ['key', 'list'] },
  // No such key: the answer is that, and needs the same rights.
  { command: 'key check', words: ['key', 'check'], input: `sk-${'x'.repeat(48)}`, code: 1 },
  { command: 'channel list', words: ['channel', 'list'] },
  { command: 'charge list', words: ['charge', 'list'] },
  { command: 'charge explain', words: ['charge', 'explain', 'gpt-4o', '--input', '1000'] },
  { command: 'account show', words: ['account', 'show', 'acme'] },
  { command: 'ledger list', words: ['ledger', 'list'] },
  { command: 'ledger list', words: ['ledger', 'list', '--account', 'acme', '--csv'] },
  { command: 'ledger total', words: ['ledger', 'total', '--by', 'model,day'] },
  { command: 'request', words: ['request', chargedId] },
  { command: 'request', words: ['request', '01jd3k5m7n9p1r3t5v7x9z1b3d'], code: 1 },
  { command: 'check', words: ['check'] },
  { command: 'config show', words: ['config', 'show'] },
  { command: 'config show', words: ['config', 'show', '--version', '1'] },
  { command: 'config diff', words: ['config', 'diff', '1', '2'] },
  { command: 'config export', words: ({ config }) => ['config', 'export', config.file('export.json')] },
  { command: 'account responses', words: ['account', 'responses', 'acme'], prepare: keepResponse },
  { command: 'response show', words: ['response', 'show', chargedId] },
  { command: 'response show', words: ['response', 'show', chargedId, '--content', '--reason', 'ticket'] },
  { command: 'response delete', words: ['response', 'delete', chargedId, '--yes'] },
  { command: 'payment list', words: ['payment', 'list'], prepare: (rig) => park(rig, 'pi_list') },
  { command: 'audit', words: ['audit', '--wait', '0'] },
  { command: 'doctor', words: ['doctor'], code: 1 },

  { command: 'secret put', words: ['secret', 'put', 'openai'], input: 'sk-upstream' },
  { command: 'secret put', words: ['secret', 'put', 'second', '--secretsmanager'], input: 'sk-second' },
  {
    command: 'secret put',
    words: ['secret', 'put', 'second', '--secretsmanager', '--replace'],
    input: 'sk-third',
  },
  { command: 'payment link', words: ['payment', 'link', 'acme', '--amount', '1', '--currency', 'usd'] },
  {
    command: 'payment link',
    words: ['payment', 'link', 'acme', '--amount', '1', '--currency', 'usd'],
    prepare: ({ ledger }) =>
      ledger.put('settings', { name: 'payments', value: { stripe: stripe('ssm:/relay/relay/links') } }),
  },
  {
    command: 'payment assign',
    words: ['payment', 'assign', 'pi_assigned', 'acme', '--yes'],
    prepare: (rig) => park(rig, 'pi_assigned'),
  },
  {
    command: 'payment reject',
    words: ['payment', 'reject', 'pi_rejected', '--yes'],
    prepare: (rig) => park(rig, 'pi_rejected'),
  },
  { command: 'key create', words: ['key', 'create', '--account', 'newcomer'] },
  { command: 'key rotate', words: ['key', 'rotate', 'aaaa', '--yes'] },
  { command: 'key disable', words: ['key', 'disable', 'bbbb', '--yes'] },
  { command: 'account grant', words: ['account', 'grant', 'acme', '1', '--wait', '0'] },
  { command: 'account refund', words: ['account', 'refund', refundedId, '--wait', '0', '--yes'] },
  { command: 'account plan', words: ['account', 'plan', 'acme', '--level', '1'] },
  {
    command: 'channel add',
    words: ['channel', 'add', '--id', 'new', '--endpoint', 'https://b.example.com/v1', '--models', 'm'],
  },
  {
    command: 'charge import',
    words: ({ config }) => {
      const list = { m: { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, mode: 'chat' } };
      return ['charge', 'import', config.file('prices.json', list), '--rate', '7', '--yes'];
    },
  },
  {
    command: 'config apply',
    words: ({ config }) => {
      const charges = [
        { id: 1, type: 'token-billing', models: ['gpt-4o'], input: 0.02, output: 0.08 },
        { id: 9, type: 'non-billing', models: ['free'] },
      ];
      const plans = [{ level: 1, price: 5 }, { level: 2 }];
      const settings = [{ name: 'contact', value: 'ops@example.com' }];
      const file = config.file('apply.json', { charges, plans, settings });
      return ['config', 'apply', file, '--prune', '--wait', '0', '--yes'];
    },
  },
  { command: 'config rollback', words: ['config', 'rollback', '1', '--wait', '0', '--yes'] },
  {
    command: 'init',
    words:
      'init --id first --endpoint https://c.example.com/v1 --models m2 --account me --amount 1 --wait 0 --yes'.split(
        ' ',
      ),
    input: 'sk-upstream',
  },

  // Channels lead to this machine on local tables alone.
  {
    command: 'channel test',
    words: ['channel', 'test', 'here'],
    isLocal: true,
    prepare: async ({ ledger, upstream }) => {
      upstream.script(({ method }, reply) =>
        method === 'GET'
          ? reply.json(200, { data: [{ id: 'here-1' }, { id: 'here-2' }] })
          : reply.json(200, {
              choices: [{ message: { content: '{"status":"fine"}' }, finish_reason: 'stop' }],
              usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
            }),
      );
      const { endpoint } = upstream;
      await ledger.put('channels', { id: 'here', endpoint, secret: 'env:UPSTREAM_KEY', models: ['here-1'] });
    },
  },
  { command: 'channel probe', words: ['channel', 'probe', 'here', '--yes'], isLocal: true },
  { command: 'channel sync', words: ['channel', 'sync', 'here', '--yes'], isLocal: true },

  {
    command: 'audit --repair',
    words: ['audit', '--wait', '0', '--repair', '-'],
    input: `${lostClose(lostId)}\n${lostClose(expiredId, { charge_nano: '90000000' })}\n`,
    prepare: loseCalls,
    code: 1,
  },
  {
    command: 'audit --rebuild-daily',
    words: ['audit', '--wait', '0', '--rebuild-daily'],
    prepare: ({ ledger }) => ledger.removeDaily('account#acme', 'day#2026-11-10#gpt-4o'),
    code: 1,
  },
];
