/** One or a few runs of every command of the operators' tool, with the preparation that each needs to succeed. */
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
  spoil,
  stripe,
} from './seed.ts';

export interface Scenario {
  /** As the table of policies names it. */
  command: string;
  /** Arguments; `FILE` becomes a file with this text or these rows. */
  words: string;
  file?: readonly [name: string, content: string | object];
  input?: string;
  isLocal?: boolean;
  prepare?: (rig: AccessRig) => Promise<unknown>;
  /** Default: 0. */
  code?: number;
}

export const wordsIn = (
  { words, file: [name = '', content] = [] as never }: Scenario,
  rig: AccessRig,
): string[] => words.split(' ').map((word) => (word === 'FILE' ? rig.config.file(name, content) : word));

/** @param options follow the command's words, unless the command's name already contains the option */
const run = (command: string, options = '', more: Partial<Scenario> = {}): Scenario => ({
  command,
  words: `${command} ${options}`.trim(),
  ...more,
});

/** Of the rows of the configuration. */
const writing = (command: string, options: string, more: Partial<Scenario> = {}): Scenario =>
  run(command, `${options} --wait 0 --yes`, more);

const price = { type: 'token-billing', models: ['gpt-4o'] };
const links = { name: 'payments', value: { stripe: stripe('ssm:/relay/relay/payments/links') } };
const listed = { m: { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, mode: 'chat' } };

/** Ordered: runs that change what others read come last. */
export const scenarios: Scenario[] = [
  run('customer list'),
  run('customer list', '--sort spent --csv', { prepare: spendToday }),
  run('customer show', 'acme'),
  run('key list'),
  run('key show', 'aaaa'),
  // The key does not exist; reporting that needs the same permissions.
  run('key check', '', { input: `sk-${'x'.repeat(48)}`, code: 1 }),
  run('channel list'),
  run('charge list'),
  run('charge explain', 'gpt-4o --input 1000'),
  run('channel show', 'openai'),
  run('charge show', '1'),
  run('plan list'),
  run('plan show', '1'),
  run('setting list'),
  run('setting show', 'payments'),
  run('grant list'),
  run('grant show', 'acme start-acme'),
  run('grant codes', '--count 2 --amount 10 --batch spring --csv'),
  run('grant batches'),
  run('grant batches', 'spring'),
  run('grant revoke', 'spring --yes'),
  run('ledger list'),
  run('ledger list', '--account acme --csv'),
  run('ledger total', '--by model,day'),
  run('request show', chargedId),
  run('request show', '01jd3k5m7n9p1r3t5v7x9z1b3d', { code: 1 }),
  run('report'),
  run('export', 'FILE', { file: ['all.jsonl', ''] }),
  run('report', '--month 2026-11 --html FILE', { file: ['report.html', ''] }),
  run('request list', '--account acme --status failed'),
  run('statement', 'acme --month 2026-11 --wait 0 --marked'),
  run('statement', '--all --month 2026-11 --wait 0 --marked'),
  run('reconcile', 'openai FILE --month 2026-11 --rate 7.2', {
    file: ['invoice.csv', 'Model,Amount\ngpt-4o,"1,234.50"\n'],
  }),
  run('check'),
  run('what-if', 'FILE', { file: ['edit.json', { charges: [{ id: 1, ...price, input: 1, output: 2 }] }] }),
  run('version list'),
  run('version show', '1'),
  run('version diff', '1 2'),
  run('config export', 'FILE', { file: ['export.json', ''] }),
  run('response total', 'acme', { prepare: keepResponse }),
  run('response show', chargedId),
  run('response show', `${chargedId} --content --reason ticket`),
  run('response delete', `${chargedId} --yes`),
  run('payment list', '', { prepare: (rig) => park(rig, 'pi_list') }),
  run('audit', '--wait 0'),
  run('restore', '--to 2030-01-01 --also keys,accounts,codes --wait 0 --yes', { prepare: spoil }),
  run('doctor', '', { code: 1 }),
  run('console', '--check'),
  run('console --read-only', '--check'),
  run('console --history', '2026-11-27'),

  run('secret new', 'channels/api.openai.com/openai', { input: 'sk-upstream' }),
  run('secret new', 'payments/second --secretsmanager', { input: 'sk-second' }),
  run('secret set', 'payments/second --secretsmanager', { input: 'sk-third' }),
  run('secret move', '--wait 0 --yes', {
    prepare: async ({ ledger, aws }) => {
      const row = { endpoint: 'https://api.example.com/v1', models: ['old-1'] };
      await ledger.put('channels', { id: 'old', ...row, secret: 'ssm:/relay/relay/old' });
      await ledger.put('channels', { id: 'older', ...row, secret: 'secretsmanager:relay/older' });
      for (const name of ['SecureString /relay/relay/old', 'secret relay/older'])
        aws.stored.set(name, 'sk-old');
    },
  }),
  run('payment link', 'acme --amount 1 --currency usd'),
  run('payment link', 'acme --amount 1 --currency usd', {
    prepare: ({ ledger }) => ledger.put('settings', links),
  }),
  run('payment assign', 'pi_assigned acme --yes', { prepare: (rig) => park(rig, 'pi_assigned') }),
  run('payment reject', 'pi_rejected --yes', { prepare: (rig) => park(rig, 'pi_rejected') }),
  run('customer new', 'fresh contact.email=a@example.com plan.level=1 --grant 5 --wait 0 --yes'),
  run('customer set', 'other note=invoice'),
  run('customer off', 'other --yes'),
  run('customer on', 'other'),
  run('customer close', 'other --yes'),
  run('customer erase', 'leaving --yes', {
    prepare: ({ ledger }) => ledger.put('accounts', { account: 'leaving', enabled: false, note: 'Eve' }),
  }),
  run('key new', 'newcomer'),
  run('key use', 'aaaa'),
  run('key set', 'aaaa rpm=60 budget.amount=20 models=gpt-4o manage=yes'),
  run('key set', 'aaaa account=newcomer --yes'),
  run('key set', 'aaaa account=acme --yes'),
  run('key rotate', 'aaaa --yes'),
  run('key export', 'FILE', { file: ['keys.csv', ''] }),
  run('key apply', 'FILE --yes', { file: ['keys.csv', `hash,rpm\n${'a'.repeat(64)},7\n`] }),
  run('customer export', 'FILE', { file: ['customers.csv', ''] }),
  writing('grant apply', 'FILE', { file: ['grants.csv', 'account,grant_id,amount\nacme,sheet-1,5\n'] }),
  run('customer apply', 'FILE --yes', { file: ['customers.csv', 'account,rpm\nacme,600\n'] }),
  run('charge export', 'FILE', { file: ['prices.csv', ''] }),
  writing('charge apply', 'FILE', { file: ['prices.csv', 'id,output\n1,75\n'] }),
  run('key off', 'bbbb --yes'),
  run('key on', 'bbbb'),
  run('key leaked', 'bbbb --yes'),
  writing('grant new', 'acme 1 --id one'),
  writing('request refund', refundedId),
  writing('channel new', 'new endpoint=https://b.example.com/v1 models=m'),
  run('charge import', 'FILE --rate 7 --yes', { file: ['prices.json', listed] }),
  writing('channel set', 'openai priority=5'),
  writing('channel off', 'openai'),
  writing('channel on', 'openai'),
  writing('charge new', 'type=non-billing models=extra'),
  writing('charge set', '1 output=0.08'),
  writing('charge set', '1 output=0.09 --from 2030-01-01'),
  writing('charge price', 'm 60/90'),
  writing('charge group', 'g models=m factor=0.9'),
  writing('charge off', '2'),
  writing('plan new', '2 price=8'),
  writing('plan set', '2 price=9'),
  writing('plan off', '2'),
  writing('setting set', 'contact new@example.com'),
  writing('setting off', 'contact'),
  writing('config apply', 'FILE --prune', {
    file: [
      'apply.json',
      {
        charges: [
          { id: 1, ...price, input: 0.02, output: 0.08 },
          { id: 9, type: 'non-billing', models: ['free'] },
        ],
        plans: [{ level: 1, price: 5 }, { level: 2 }],
        settings: [{ name: 'contact', value: 'ops@example.com' }],
      },
    ],
  }),
  writing('version rollback', '2'),
  writing(
    'init',
    '--id first --endpoint https://c.example.com/v1 --models m2 --price m2=1/2 --account me --amount 1',
    { input: 'sk-upstream' },
  ),

  // Channels may point to this machine only with local tables.
  run('channel test', 'here', {
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
  }),
  run('channel probe', 'here --yes', { isLocal: true }),
  run('channel sync', 'here --yes', { isLocal: true }),
  run('channel balance', 'site', {
    isLocal: true,
    prepare: async ({ ledger, upstream }) => {
      upstream.script((_call, reply) =>
        reply.json(200, { balance_infos: [{ currency: 'CNY', total_balance: '1' }] }),
      );
      const { endpoint } = upstream;
      const row = {
        id: 'site',
        endpoint,
        secret: 'env:UPSTREAM_KEY',
        models: ['s'],
        balance_form: 'deepseek',
      };
      await ledger.put('channels', { ...row, state: true });
    },
  }),
  run('customer profile', 'acme', {
    isLocal: true,
    prepare: async ({ ledger, upstream }) => {
      upstream.script((_call, reply) => reply.json(200, { id: 'uprof_1', enforcement_actions: [] }));
      const row = {
        type: 'anthropic',
        endpoint: upstream.endpoint,
        secret: 'env:UPSTREAM_KEY',
        models: ['here-3'],
        state: true,
      };
      await ledger.put('channels', { id: 'named', ...row });
    },
  }),

  run('audit --repair', '- --wait 0 --yes', {
    input: `${lostClose(lostId)}\n${lostClose(expiredId, { charge_nano: '90000000' })}\n`,
    prepare: loseCalls,
    code: 1,
  }),
  run('audit --rebuild-daily', '--wait 0', {
    prepare: async ({ ledger }) => {
      await ledger.removeDaily('account#acme', 'day#2026-11-10#gpt-4o');
      await ledger.removeDaily('channel#openai', 'day#2026-11-10#gpt-4o');
    },
    code: 1,
  }),
  // Nothing here publishes the closing of the relay.
  run('restore', '--to 2030-01-01 --wait 0.1 --yes', { code: 1 }),
];
