/** Prepares an empty stack for its first answer: prices, a channel, a grant and a key. Reads no row itself. */
import {
  carryOutGrant,
  planGrantAmount,
  type GrantMade,
  type GrantPlan,
} from '../../../../shared/operate/accounts/grant-amount.ts';
import {
  planAddChannel,
  type AddChannelPlan,
  type ChannelInput,
} from '../../../../shared/operate/channels/add-channel.ts';
import { offeredModels } from '../../../../shared/operate/channels/offered-models.ts';
import { carryOutStoreSecret } from '../../../../shared/operate/channels/store-secret.ts';
import { awaitPublished } from '../../../../shared/operate/config/write-rows.ts';
import {
  carryOutCreateKey,
  planCreateKey,
  type MadeKey,
  type NewKeyPlan,
} from '../../../../shared/operate/keys/create-key.ts';
import { Failure, usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import type { FirstPricesPlan } from '../../../../shared/operate/prices/first-prices.ts';
import { carryOutWrites } from '../../../../shared/operate/row-writes.ts';
import { namesLike } from '../../../../shared/upstreams/model-listing.ts';
import type { Run } from '../command/command-context.ts';
import { writes, type Writing } from '../command/writing.ts';
import { askPrices } from './init-prices.ts';
import {
  answerFrom,
  askSecret,
  askUpstream,
  type InitOptions,
  type UpstreamSecret,
} from './init-questions.ts';
import { grantFacts, printGrant } from '../print/accounts.ts';
import { newKeyFacts, printNewKey } from '../print/keys.ts';
import { parseList } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

interface InitPlans extends Pick<InitOptions, 'wait'> {
  secret: UpstreamSecret;
  prices: FirstPricesPlan;
  channel: AddChannelPlan;
  /** Undefined: the account starts without a balance. */
  grant: GrantPlan | undefined;
  key: NewKeyPlan;
}

interface Made extends MadeKey {
  grant: GrantMade | undefined;
  /** Why it is not known to be live. */
  unpublished: string | undefined;
  curl: string;
}

export async function planInit(run: Run, options: InitOptions): Promise<Writing<Made>> {
  const { ports, terminal } = run;
  const answer = answerFrom(terminal);
  const upstream = await askUpstream(answer, options);
  const secret = await askSecret(terminal, ports, { channel: upstream, options });
  const { reference, value } = secret;
  const facts = { ...upstream, secret: reference };
  const input = { ...facts, models: options.models ?? (await askModels(terminal, ports, { facts, value })) };
  // An identical row was left by an earlier, interrupted run.
  const channel = await planAddChannel(ports, input, 'keep-same');
  const prices = await askPrices(run, answer, { models: input.models, options });
  const account = await answer(options.account, { name: '--account', question: 'Name of the first account' });
  const question = 'Yuan on its balance (0: none yet)';
  const amount = await answer(options.amount, { name: '--amount', question, usual: '0' });
  const first = { account, amount, id: 'init', reason: 'first amount', new: true };
  const grant = Number(amount) === 0 ? undefined : await planGrantAmount(ports, first);
  const key = await planCreateKey(ports, { account });
  const plans = { wait: options.wait, secret, prices, channel, grant, key };
  return writes({
    plan: {
      changes: [...prices.changes, ...channel.changes, ...(grant?.changes ?? []), ...key.changes],
      effect: [
        ...prices.effect,
        `channel ${input.id}: ${input.models.length} models, ${reference ?? 'no secret'}`,
        `account ${account}: ${amount} yuan, one new key`,
      ],
      questions: ['Write this?'],
      warnings: [...channel.warnings, ...(prices.warnings ?? []), ...prices.unpriced.map(unpricedWords)],
    },
    carryOut: async () => write(ports, plans, input.models[0]),
    print: (shown, made) => printInit(shown, plans, made),
    facts: (made) => ({
      channel: input.id,
      unpriced: prices.unpriced,
      ...newKeyFacts(terminal, key, made),
      ...(made && { curl: made.curl, ...(grant && { grant: grantFacts(grant, made.grant) }) }),
    }),
  });
}

const unpricedWords = (model: string): string =>
  `${model} has no price: its calls are refused until a rule of charges names it`;

/** Asks for models, and shows the upstream's list if there is one. */
async function askModels(
  { ask, isAttended, ...terminal }: Terminal,
  ports: OperatorPorts,
  { facts, value }: { facts: Omit<ChannelInput, 'models'>; value: string | undefined },
): Promise<string[]> {
  if (!isAttended) throw usageFailure('--models is missing, and nobody is here to answer');
  const { names: listed, warnings } = await offeredModels(ports, facts, value);
  warnings.forEach(terminal.remark);
  if (listed.length > 0) terminal.print(listed.join('  '));
  for (;;) {
    const typed = await ask('Models to serve, separated by commas (* stands for anything):');
    if (typed === '') continue;
    const wanted = parseList(typed);
    if (listed.length === 0) return wanted;
    const unlisted = wanted.filter((each) => namesLike([each], listed).length === 0);
    if (unlisted.length === 0) return namesLike(wanted, listed);
    terminal.remark(`the upstream lists no ${unlisted.join(', ')}`);
  }
}

/** Prices come before the channel that serves the models: no call in between is free. */
async function write(
  ports: OperatorPorts,
  { secret, prices, channel, grant, key, wait }: InitPlans,
  model = '',
): Promise<Made> {
  const { storing, value = '' } = secret;
  if (storing) await carryOutStoreSecret(ports, storing, value);
  await carryOutWrites(ports, prices);
  const granted = grant && (await carryOutGrant(ports, grant, wait * 1000));
  await carryOutWrites(ports, channel);
  // If nothing was published in time, the rows are still valid, so the key is created anyway.
  const unpublished = await awaitPublished(ports, wait).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Failure) return error.message;
      throw error;
    },
  );
  const made = await carryOutCreateKey(ports, key);
  return { ...made, grant: granted, unpublished, curl: await curlLine(ports, made.secretKey, model) };
}

async function curlLine(ports: OperatorPorts, secretKey: string, model: string): Promise<string> {
  const baseUrl = (await ports.baseUrl()) ?? 'BASE_URL';
  const body = { model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] };
  return `curl -N ${baseUrl}/chat/completions -H "Authorization: Bearer ${secretKey}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
}

function printInit(terminal: Terminal, { secret, grant, key }: InitPlans, made: Made): void {
  if (secret.storing) terminal.print(`the key is stored: ${secret.storing.reference}`);
  if (grant && made.grant) printGrant(terminal, grant, made.grant);
  if (made.unpublished === undefined) terminal.print('it is written; live within 10 seconds.');
  else terminal.remark(made.unpublished);
  printNewKey(terminal, { ...key, ...made });
  if (made.curl.includes(' BASE_URL/')) terminal.remark('BASE_URL is the output BaseUrl of the stack.');
  terminal.print(`\n${made.curl}`);
}
