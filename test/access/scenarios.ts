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
  spendToday,
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

/** Of the rows of the configuration. */
const writing = (command: string, ...words: string[]): Scenario => ({
  command,
  words: [...command.split(' '), ...words, '--wait', '0', '--yes'],
});

/** In this order: those that change what others read come last. */
export const scenarios: Scenario[] = [
  { command: 'customer list', words: ['customer', 'list'] },
  { command: 'customer list', words: ['customer', 'list', '--sort', 'spent', '--csv'], prepare: spendToday },
  { command: 'customer show', words: ['customer', 'show', 'acme'] },
  { command: 'key list', words: ['key', 'list'] },
  // No such key: the answer is that, and needs the same rights.
  { command: 'key check', words: ['key', 'check'], input: `sk-${'x'.repeat(48)}`, code: 1 },
  { command: 'channel list', words: ['channel', 'list'] },
  { command: 'charge list', words: ['charge', 'list'] },
  { command: 'charge explain', words: ['charge', 'explain', 'gpt-4o', '--input', '1000'] },
  { command: 'account show', words: ['account', 'show', 'acme'] },
  { command: 'channel show', words: ['channel', 'show', 'openai'] },
  { command: 'charge show', words: ['charge', 'show', '1'] },
  { command: 'plan list', words: ['plan', 'list'] },
  { command: 'plan show', words: ['plan', 'show', '1'] },
  { command: 'setting list', words: ['setting', 'list'] },
  { command: 'setting show', words: ['setting', 'show', 'payments'] },
  { command: 'grant list', words: ['grant', 'list'] },
  { command: 'grant show', words: ['grant', 'show', 'acme', 'start-acme'] },
  { command: 'ledger list', words: ['ledger', 'list'] },
  { command: 'ledger list', words: ['ledger', 'list', '--account', 'acme', '--csv'] },
  { command: 'ledger total', words: ['ledger', 'total', '--by', 'model,day'] },
  { command: 'request', words: ['request', chargedId] },
  { command: 'request', words: ['request', '01jd3k5m7n9p1r3t5v7x9z1b3d'], code: 1 },
  { command: 'report', words: ['report'] },
  {
    command: 'report',
    words: ({ config }) => ['report', '--month', '2026-11', '--html', config.file('report.html')],
  },
  { command: 'requests', words: ['requests', '--account', 'acme', '--status', 'failed'] },
  {
    command: 'statement',
    words: ['statement', 'acme', '--month', '2026-11', '--wait', '0', '--marked'],
  },
  {
    command: 'reconcile',
    words: ({ config }) => [
      'reconcile',
      'openai',
      config.file('invoice.csv', 'Model,Amount\ngpt-4o,"1,234.50"\n'),
      '--month',
      '2026-11',
      '--rate',
      '7.2',
    ],
  },
  { command: 'check', words: ['check'] },
  {
    command: 'what-if',
    words: ({ config }) => {
      const charges = [{ id: 1, type: 'token-billing', models: ['gpt-4o'], input: 1, output: 2 }];
      return ['what-if', config.file('edit.json', { charges })];
    },
  },
  { command: 'version list', words: ['version', 'list'] },
  { command: 'version show', words: ['version', 'show', '1'] },
  { command: 'version diff', words: ['version', 'diff', '1', '2'] },
  { command: 'config export', words: ({ config }) => ['config', 'export', config.file('export.json')] },
  { command: 'account responses', words: ['account', 'responses', 'acme'], prepare: keepResponse },
  { command: 'response show', words: ['response', 'show', chargedId] },
  { command: 'response show', words: ['response', 'show', chargedId, '--content', '--reason', 'ticket'] },
  { command: 'response delete', words: ['response', 'delete', chargedId, '--yes'] },
  { command: 'payment list', words: ['payment', 'list'], prepare: (rig) => park(rig, 'pi_list') },
  { command: 'audit', words: ['audit', '--wait', '0'] },
  { command: 'doctor', words: ['doctor'], code: 1 },
  { command: 'console', words: ['console', '--check'] },
  { command: 'console --read-only', words: ['console', '--read-only', '--check'] },

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
  {
    command: 'customer new',
    words: 'customer new fresh --grant 5 --contact a@example.com --wait 0 --yes'.split(' '),
  },
  { command: 'customer note', words: ['customer', 'note', 'other', 'pays by invoice'] },
  { command: 'customer disable', words: ['customer', 'disable', 'other', '--yes'] },
  { command: 'customer enable', words: ['customer', 'enable', 'other'] },
  { command: 'customer close', words: ['customer', 'close', 'other', '--yes'] },
  { command: 'key create', words: ['key', 'create', '--account', 'newcomer'] },
  { command: 'key use', words: ['key', 'use', 'aaaa'] },
  { command: 'key limits', words: ['key', 'limits', 'aaaa', '--rpm', '60'] },
  { command: 'key budget', words: ['key', 'budget', 'aaaa', '20'] },
  { command: 'key models', words: ['key', 'models', 'aaaa', 'gpt-4o'] },
  { command: 'key move', words: ['key', 'move', 'aaaa', 'newcomer', '--yes'] },
  { command: 'key move', words: ['key', 'move', 'aaaa', 'acme', '--yes'] },
  { command: 'key rotate', words: ['key', 'rotate', 'aaaa', '--yes'] },
  { command: 'key disable', words: ['key', 'disable', 'bbbb', '--yes'] },
  { command: 'key enable', words: ['key', 'enable', 'bbbb'] },
  { command: 'key leaked', words: ['key', 'leaked', 'bbbb', '--yes'] },
  {
    command: 'account grant',
    words: ['account', 'grant', 'acme', '1', '--id', 'one', '--wait', '0', '--yes'],
  },
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
  writing('channel set', 'openai', 'priority=5'),
  writing('channel off', 'openai'),
  writing('channel on', 'openai'),
  writing('charge set', '1', 'output=0.08'),
  writing('charge set', '1', 'output=0.09', '--from', '2030-01-01'),
  writing('charge price', 'm', '60/90'),
  writing('charge off', '2'),
  writing('plan set', '2', 'price=9'),
  writing('plan off', '2'),
  writing('setting set', 'contact', 'new@example.com'),
  writing('setting unset', 'contact'),
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
  writing('version rollback', '2'),
  {
    command: 'init',
    words:
      'init --id first --endpoint https://c.example.com/v1 --models m2 --price m2=1/2 --account me --amount 1 --wait 0 --yes'.split(
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
    words: ['audit', '--wait', '0', '--repair', '-', '--yes'],
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
