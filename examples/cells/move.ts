/** Moves an account to another cell: `node examples/cells/move.ts acme cell-a cell-b`. After an interruption, run it again. */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDB, paginateScan } from '@aws-sdk/client-dynamodb';

const [account = '', from = '', to = ''] = process.argv.slice(2);
if (to === '' || to === from) throw new Error('usage: node examples/cells/move.ts ACCOUNT OLD_CELL NEW_CELL');
const tables = new DynamoDB();
/** Runs relay-ops in a cell, and returns the JSON that it prints. */
function runOps(cell: string, ...words: string[]): unknown {
  const options = ['--no', 'relay-ops', ...words, '--stack', cell, '--json'];
  return JSON.parse(execFileSync('npx', options, { encoding: 'utf8' }));
}

async function readAccount(cell: string) {
  const Key = { account: { S: account } };
  return (await tables.getItem({ TableName: `${cell}-accounts`, Key, ConsistentRead: true })).Item ?? {};
}
const { enabled, _closed } = await readAccount(from);
if (enabled?.BOOL === false && !_closed) throw new Error(`${account} is disabled: enable it first`);
const copy = await readAccount(to);
if (copy['account'] && !copy['_closed'] && !copy['_move']) throw new Error(`${account} is already in ${to}`);
runOps(from, 'customer', 'close', account, '--yes');
// Closing again keeps the time, so a repeated run computes the same id.
const row = await readAccount(from);
const closed = row['_closed']?.S ?? '';
const move = `moved-${from}-${closed}`;
// Functions cache keys for 30 s, so they may still accept calls. Waits twice as long.
await sleep(Date.parse(closed) + 60_000 - Date.now());
const show = () => runOps(from, 'customer', 'show', account) as { open: number; available: string };
while (show().open > 0) await sleep(5_000);
const found = await readAccount(to);
if (found['_move']?.S !== move) {
  if (found['account'] && (found['_closed']?.S ?? '~') >= closed)
    throw new Error(`${account} is already in ${to}; to reopen it in ${from}, run customer on`);
  const filter = { FilterExpression: 'account = :a', ExpressionAttributeValues: { ':a': { S: account } } };
  const pages = paginateScan({ client: tables }, { TableName: `${from}-keys`, ...filter });
  for await (const { Items = [] } of pages)
    for (const Item of Items) await tables.putItem({ TableName: `${to}-keys`, Item });
  // Written last: it marks the keys as copied.
  await tables.putItem({ TableName: `${to}-accounts`, Item: { ...row, _move: { S: move } } });
}
const negate = (amount: string): string => `-${amount}`.replace('--', '');

/** Deducts an amount in the old cell, then credits it in the new one. A grant is applied once, however often it is written. */
function transfer(id: string, amount: string): void {
  for (const [cell, yuan] of Object.entries({ [from]: negate(amount), [to]: amount })) {
    const words = [account, yuan, '--id', id, '--reason', `moved from ${from} to ${to}`, '--yes'];
    const { applied } = runOps(cell, 'grant', 'new', ...words) as { applied: boolean };
    if (!applied) throw new Error(`grant ${id} is not applied yet in ${cell}: run this again`);
  }
}

const grants = runOps(from, 'grant', 'list', '--account', account) as { grant_id: string; amount: string }[];
const taken = grants.filter(({ grant_id }) => grant_id.startsWith(move));
for (const { grant_id, amount } of taken) transfer(grant_id, negate(amount));
const { available } = show();
if (Number(available) !== 0) transfer(`${move}-${taken.length + 1}`, available);
if ((await readAccount(to))['_closed']?.S === closed) runOps(to, 'customer', 'on', account, '--yes');
console.log(`${account} is in ${to}: now put account:${account} into the store`);
