/** From an empty stack to a first answer: one channel, one account, one key. */
import { readChannel } from '../../../shared/config/compile/read-channel.ts';
import { GrantRow } from '../../../shared/config/rows/grant-row.ts';
import { plainRow, readRow } from '../../../shared/config/rows/read-row.ts';
import { grantAndPrint } from './account-commands.ts';
import { createAndPrintKey } from './key-commands.ts';
import { surroundings } from './terminal/process-context.ts';
import { checkRow, rowOf } from '../../../shared/operate/channels/add-channel.ts';
import { canonicalJson } from '../../../shared/wire/canonical-json.ts';
import { awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import { Failure, usageFailure } from '../../../shared/operate/operator-failure.ts';
import { answer, askSecret, askUpstream, type InitOptions, type UpstreamSecret } from './init-questions.ts';
import { parseList } from './terminal/option-values.ts';
import { SecretTaken } from '../../../shared/operate/secret-writer.ts';
import type { Session } from '../session/session.ts';
import type { RawRow } from '../../../shared/operate/row-tables.ts';
import { ask, confirm, isAttended, openTerminal, remark, say } from './terminal/terminal.ts';
import {
  listUpstreamModels,
  namesLike,
  whyUnlisted,
} from '../../../shared/operate/channels/upstream-models.ts';

export async function initialise(session: Session, options: InitOptions): Promise<void> {
  const upstream = await askUpstream(options);
  const secret = await askSecret(session, upstream, options);
  const { reference } = secret;
  const facts = { ...upstream, ...(reference !== undefined && { secret: reference }) };
  const models = options.models ?? (await askModels(session, rowOf({ ...facts, models: [] }), secret));
  const row = rowOf({ ...facts, models });
  const { warning } = checkRow(session, row);
  const account = await answer(options.account, { name: '--account', question: 'Name of the first account' });
  const amount = await answer(options.amount, {
    name: '--amount',
    question: 'Yuan on its balance (0: none yet)',
    usual: '0',
  });
  checkGrant(account, amount);
  await checkFree(session, row);

  say(`channel ${String(row['id'])}: ${models.length} models, ${reference ?? 'no secret'}`);
  say(`account ${account}: ${amount} yuan, one new key`);
  if (warning !== undefined) remark(`warning: ${warning}`);
  await confirm('Write this?', options);
  await write(session, { row, secret, account, amount }, options);
}

/** From the upstream's list, where there is one. */
async function askModels(
  session: Session,
  row: RawRow,
  { reference, value }: UpstreamSecret,
): Promise<string[]> {
  if (!isAttended()) throw usageFailure('--models is missing, and nobody is here to answer');
  const reading = readChannel(row, session.target);
  if ('problem' in reading) throw usageFailure(reading.problem);
  const unread = reference !== undefined && value === undefined;
  const why =
    whyUnlisted(reading.row) ?? (unread ? 'without the key, its models cannot be listed' : undefined);
  const listed = why === undefined ? await listUpstreamModels(reading.row, value).catch(remarkFailure) : [];
  if (why !== undefined) remark(why);
  if (listed.length > 0) say(listed.join('  '));
  for (;;) {
    const typed = await ask('Models to serve, separated by commas (* stands for anything):');
    if (typed === '') continue;
    const wanted = parseList(typed);
    const unlisted = wanted.filter((each) => namesLike([each], listed).length === 0);
    if (listed.length === 0) return wanted;
    if (unlisted.length === 0) return namesLike(wanted, listed);
    remark(`the upstream lists no ${unlisted.join(', ')}`);
  }
}

function remarkFailure(error: unknown): string[] {
  if (!(error instanceof Failure)) throw error;
  remark(error.message);
  return [];
}

const grantId = 'init';

function checkGrant(account: string, amount: string): void {
  const grant = { account, grant_id: grantId, amount: Number(amount) === 0 ? '1' : amount };
  const reading = readRow(GrantRow, grant);
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
}

/** A row that is there just so was written by an earlier run that did not come to its end. */
async function checkFree({ tables }: Session, row: RawRow): Promise<void> {
  const id = String(row['id']);
  const there = await tables.get('channels', id);
  if (there && canonicalJson(plainRow(there)) !== canonicalJson(row))
    throw usageFailure(`nothing was written: there is a channel ${id} already; choose another --id`);
}

interface Wanted {
  row: RawRow;
  secret: UpstreamSecret;
  account: string;
  amount: string;
}

async function write(session: Session, wanted: Wanted, options: InitOptions): Promise<void> {
  const terminal = openTerminal(surroundings);
  const { row, secret, account, amount } = wanted;
  await store(session, String(row['id']), secret);
  if (Number(amount) !== 0) {
    const grant = { account, amount, id: grantId, reason: 'first amount', isNew: true };
    await grantAndPrint(session, terminal, { grant, waitSeconds: options.wait });
  }
  await session.tables.create('channels', row);
  say(`channel ${String(row['id'])} is written.`);
  // Without the compiler nothing is served, but what was written is right, and the key is still to come.
  await awaitPublished(session, options.wait).catch(remarkFailure);
  const key = await createAndPrintKey(session, terminal, { account });
  const found = await session.baseUrl();
  if (found === undefined) remark('BASE_URL is the output BaseUrl of the stack.');
  const [model] = row['models'] as string[];
  say('');
  say(curlLine(found ?? 'BASE_URL', key, String(model)));
}

async function store(
  session: Session,
  id: string,
  { reference, value, isNew }: UpstreamSecret,
): Promise<void> {
  if (!isNew || value === undefined) return;
  try {
    await session.secrets.put(id, value, { managed: false, replace: false });
  } catch (error) {
    if (error instanceof SecretTaken)
      throw usageFailure(
        `there is a key at ${reference} already: repeat with --secret ${reference}, or choose another --id`,
      );
    throw error;
  }
  say(`the key is stored: ${reference}`);
}

function curlLine(baseUrl: string, key: string, model: string): string {
  const body = { model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] };
  return `curl -N ${baseUrl}/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
}
