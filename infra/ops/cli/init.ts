/** Prepares an empty stack for its first answer: a channel, a grant and a key. Reads no row itself. */
import {
  awaitApplied,
  carryOutGrantAmount,
  planGrantAmount,
  type GrantPlan,
} from '../../../shared/operate/accounts/grant-amount.ts';
import {
  planAddChannel,
  type AddChannelPlan,
  type ChannelInput,
} from '../../../shared/operate/channels/add-channel.ts';
import { offeredModels } from '../../../shared/operate/channels/offered-models.ts';
import { carryOutStoreSecret } from '../../../shared/operate/channels/store-secret.ts';
import { awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import {
  carryOutCreateKey,
  planCreateKey,
  type NewKeyPlan,
} from '../../../shared/operate/keys/create-key.ts';
import { Failure, usageFailure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../../shared/operate/row-writes.ts';
import { namesLike } from '../../../shared/upstreams/model-listing.ts';
import {
  answerFrom,
  askSecret,
  askUpstream,
  type InitOptions,
  type UpstreamSecret,
} from './init-questions.ts';
import { printApplied, printGrant, printNewAccount } from './print/accounts.ts';
import { printPublished } from './print/config.ts';
import { printNewKey } from './print/keys.ts';
import { parseList } from './terminal/option-values.ts';
import type { Terminal } from './terminal/terminal.ts';

interface InitPlan extends Pick<InitOptions, 'wait'> {
  input: ChannelInput;
  secret: UpstreamSecret;
  channel: AddChannelPlan;
  /** Undefined: the account starts without a balance. */
  grant: GrantPlan | undefined;
  key: NewKeyPlan;
}

export async function initialise(
  terminal: Terminal,
  ports: OperatorPorts,
  options: InitOptions,
): Promise<void> {
  const answer = answerFrom(terminal);
  const upstream = await askUpstream(answer, options);
  const secret = await askSecret(terminal, ports, { channel: upstream, options });
  const { reference, value } = secret;
  const facts = { ...upstream, secret: reference };
  const input = { ...facts, models: options.models ?? (await askModels(terminal, ports, { facts, value })) };
  // An identical row was left by an earlier, interrupted run.
  const channel = await planAddChannel(ports, input, 'keep-same');
  const account = await answer(options.account, { name: '--account', question: 'Name of the first account' });
  const question = 'Yuan on its balance (0: none yet)';
  const amount = await answer(options.amount, { name: '--amount', question, usual: '0' });
  const grant =
    Number(amount) === 0
      ? undefined
      : await planGrantAmount(ports, { account, amount, id: 'init', reason: 'first amount', new: true });
  const key = await planCreateKey(ports, { account });

  terminal.print(`channel ${input.id}: ${input.models.length} models, ${reference ?? 'no secret'}`);
  terminal.print(`account ${account}: ${amount} yuan, one new key`);
  terminal.warn(channel.warnings);
  await terminal.confirm('Write this?', options);
  const secretKey = await write(terminal, ports, { ...options, input, secret, channel, grant, key });
  await printCurlLine(terminal, ports, { secretKey, model: String(input.models[0]) });
}

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

/**
 * Carries out the plans.
 * @returns the new key of the account
 */
async function write(
  terminal: Terminal,
  ports: OperatorPorts,
  { input, secret, channel, grant, key, wait }: InitPlan,
): Promise<string> {
  const { storing, value = '' } = secret;
  if (storing) terminal.print(`the key is stored: ${await carryOutStoreSecret(ports, storing, value)}`);
  if (grant) {
    printGrant(terminal, grant, await carryOutGrantAmount(ports, grant));
    printApplied(terminal, grant, await awaitApplied(ports, grant, wait * 1000));
  }
  await carryOutWrites(ports, channel);
  terminal.print(`channel ${input.id} is written.`);
  try {
    printPublished(terminal, await awaitPublished(ports, wait));
  } catch (error) {
    // If nothing was published in time, the rows are still valid, so the key is created anyway.
    if (!(error instanceof Failure)) throw error;
    terminal.remark(error.message);
  }
  const created = await carryOutCreateKey(ports, key);
  printNewAccount(terminal, created.made);
  printNewKey(terminal, { ...key, ...created }, {});
  return created.secretKey;
}

async function printCurlLine(
  { print, remark }: Terminal,
  ports: OperatorPorts,
  { secretKey, model }: { secretKey: string; model: string },
): Promise<void> {
  const found = await ports.baseUrl();
  if (found === undefined) remark('BASE_URL is the output BaseUrl of the stack.');
  const body = { model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] };
  print(
    `\ncurl -N ${found ?? 'BASE_URL'}/chat/completions -H "Authorization: Bearer ${secretKey}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`,
  );
}
