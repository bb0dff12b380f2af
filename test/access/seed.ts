/** Fills the tables and stores before the first command runs. */
import { idAt, yuan } from '../ops/ledger-rig.ts';
import { storedRows } from '../ops/stored-rows.ts';
import type { AccessRig } from './access-rig.ts';

export const chargedId = idAt('2026-11-10T12:00:00Z', 'charged');
export const refundedId = idAt('2026-11-10T13:00:00Z', 'refunded');
export const lostId = idAt('2026-11-10T14:00:00Z', 'lost');
export const expiredId = idAt('2026-11-10T15:00:00Z', 'expired');

export const roleModel = 'openai.gpt-oss-120b-1:0';
const tokens = { prompt_tokens: 12, completion_tokens: 40 };
const due = yuan('0.003096');
const priced = { type: 'token-billing', input: 0.018, output: 0.072 };
const key = (letter: string) => ({
  hash: letter.repeat(64),
  hint: `sk-${letter.repeat(4)}...${letter.repeat(4)}`,
  account: 'acme',
  enabled: true,
});

export async function seed({ ledger, config, aws }: AccessRig): Promise<void> {
  await ledger.put('accounts', { account: 'acme' }, { account: 'other' });
  await ledger.put('keys', key('a'), key('b'));
  await ledger.put(
    'channels',
    {
      id: 'openai',
      endpoint: 'https://api.example.com/v1',
      secret: 'ssm:/relay/relay/channels/api.example.com/openai',
      models: ['gpt-4o'],
      state: true,
    },
    { id: 'role', type: 'bedrock', region: 'us-east-1', models: [roleModel], state: true },
  );
  await ledger.put('charges', { id: 1, models: ['gpt-4o', roleModel], ...priced });
  await ledger.put('plans', { level: 1 });
  await ledger.put('settings', { name: 'contact', value: 'old@example.com' });
  await ledger.put('settings', {
    name: 'payments',
    value: { stripe: stripe('secretsmanager:relay/payments/links') },
  });
  aws.stored.set('secret relay/payments/links', 'links-secret');
  aws.stored.set('SecureString /relay/relay/payments/links', 'links-secret');
  aws.account.models['us-east-1'] = [{ id: roleModel }];
  const bedrockModels = [`arn:aws:bedrock:us-east-1::foundation-model/${roleModel}`];
  if (aws.account.stack)
    aws.account.stack.outputs['Options'] = JSON.stringify({ bedrockModels, reservedConcurrency: 100 });
  await ledger.grant('acme', '10');
  await ledger.call('acme', chargedId, {
    charge: due,
    ...tokens,
    channel: 'openai',
    upstream_model: 'gpt-4o',
  });
  await ledger.call('acme', refundedId, { charge: due, ...tokens });
  await config.compile();
  await ledger.put('charges', { id: 2, models: ['gpt-4o-mini'], ...priced });
  await config.compile();
}

/** Records the tables as of one second after all other scenarios, then corrupts a row in each table that a restore writes. */
export async function spoil({ ledger, recovery }: AccessRig): Promise<void> {
  const payment = {
    id: 'pi_spoiled',
    account: 'acme',
    version: 1,
    state: 'granted',
    at: '2026-11-20T00:00:00Z',
  };
  const code = { hash: 'c'.repeat(64), batch: 'lost', amount: 10 };
  await ledger.put('payments', { ...payment, reversals: {} });
  await ledger.put('codes', code);
  await recovery.remember('2030-01-01T00:00:00Z');
  await ledger.remove('payments', { id: payment.id });
  await ledger.remove('codes', { hash: code.hash });
  await ledger.remove('keys', { hash: 'b'.repeat(64) });
  await ledger.remove('accounts', { account: 'other' });
  await ledger.remove('grants', { account: 'acme', grant_id: 'start-acme' });
  await ledger.remove('ledger', { account: 'acme', id: chargedId });
  await ledger.damage('quotas', { account: 'acme' }, 'available', 1);
  await ledger.removeDaily('account#acme', 'day#2026-11-10#gpt-4o');
  await ledger.removeDaily('channel#openai', 'day#2026-11-10#gpt-4o');
}

/** The setting of payments, with the secret that signs references. */
export const stripe = (reference: string) => ({
  live: false,
  webhook_secret: 'ssm:/relay/relay/payments/hook',
  link_secret: reference,
  rates: { usd: 7.1 },
});

/** The log line of a close that failed to be written. */
export const lostClose = (id: string, changes: object = {}): string =>
  JSON.stringify({
    level: 'WARN',
    message: 'settle_lost',
    request_id: id,
    account: 'acme',
    give_back: false,
    kind: 'settled',
    charge_nano: String(due),
    at: 1_795_000_000,
    endpoint: 'chat',
    prompt_tokens: 12,
    completion_tokens: 40,
    end: 'completed',
    price: '1:tokens:0.018:0.072',
    ...changes,
  });

/** A lost call with a budget, which the sweeper closed as expired. */
export async function loseCalls({ ledger }: AccessRig): Promise<void> {
  await ledger.reserve('acme', lostId);
  const budget = { budget: 'month@2026-11-01' };
  await ledger.call('acme', expiredId, { charge: yuan('0.018'), kind: 'expired' }, budget);
}

/** A call made now, because lists of spenders cover the current month. */
export async function spendToday({ ledger }: AccessRig): Promise<void> {
  const id = idAt(new Date().toISOString(), 'today');
  await ledger.call('acme', id, { charge: due, ...tokens });
}

/** The stored response of the charged call. */
export const keepResponse = async ({ ledger }: AccessRig): Promise<void> =>
  ledger.put('responses', ...(await storedRows(chargedId)));

export async function park({ ledger }: AccessRig, id: string): Promise<void> {
  const { payments } = await ledger.ports();
  const paid = { minor: 1000n, currency: 'usd' };
  const after = {
    id,
    version: 1,
    state: 'parked',
    at: '2026-11-20T00:00:00Z',
    paid,
    rate: '7',
    live: false,
    problem: 'no reference came with the payment',
    reversals: {},
  } as const;
  await payments.write({ before: undefined, after, grants: [] });
}
