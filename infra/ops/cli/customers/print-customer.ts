/** Prints one customer: what the console's page of it shows. */
import { formatYuan, parseYuan } from '../../../../shared/billing/amount.ts';
import type { DailyFigures } from '../../../../shared/billing/daily/daily-figures.ts';
import type { WrittenGrant } from '../../../../shared/billing/grant.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import { useDays, type CustomerUse } from '../../../../shared/operate/customers/customer-use.ts';
import type { CustomerView } from '../../../../shared/operate/customers/customer-view.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import { shellWord } from '../../../../shared/operate/shell-word.ts';
import type { AccountPlan } from '../../../../shared/wire/public/account.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { hashText, hintText, shortHash } from '../print/keys.ts';
import type { Terminal } from '../terminal/terminal.ts';

const keysShown = 20;
const grantsShown = 5;
const modelsShown = 5;

export function printCustomer(terminal: Terminal, view: CustomerView): void {
  if (terminal.format === 'json') terminal.printJson(customerJson(view));
  else printText(terminal, view);
  terminal.warn(view.warnings);
  const { account, keys, hasAllKeys, grants, hasAllGrants } = view;
  const isText = terminal.format !== 'json';
  if (!hasAllKeys || (isText && keys.length > keysShown))
    terminal.remark(`there may be more keys: see \`key list --account ${shellWord(account)}\``);
  if (!hasAllGrants || (isText && grants.length > grantsShown))
    terminal.remark(`there are more grants: see \`grant list --account ${shellWord(account)}\``);
}

function customerJson(view: CustomerView) {
  const { account, isOff, item, plan, attributes, written, keys, hasAllKeys, grants, hasAllGrants } = view;
  return {
    account,
    state: isOff ? 'off' : 'on',
    available: formatYuan(item.available),
    reserved: formatYuan(reservedOf(item)),
    spent: formatYuan(item.spent),
    granted: formatYuan(item.granted),
    open: item.open.size,
    settled: item.settled,
    plan,
    attributes,
    written_by: textOf(written._by) || null,
    written_at: textOf(written._at) || null,
    keys: keys.map(({ row, state }) => ({ hint: hintText(row['hint']), hash: hashText(row['hash']), state })),
    all_keys: hasAllKeys,
    grants: grants.map((grant) => Object.assign({}, grant, { amount: amountText(grant) })),
    all_grants: hasAllGrants,
    use: useJson(view.use),
  };
}

/** Whole days of UTC, the first and the last included. */
const useJson = ({ from, to, sum, days, models }: CustomerUse) => ({
  from,
  to,
  ...figuresJson(sum),
  days: days.map(({ day, figures }) => ({ day, ...figuresJson(figures) })),
  models: models.map(({ model, figures }) => ({ model, ...figuresJson(figures) })),
});

const figuresJson = ({ counts, amounts }: DailyFigures) => ({
  calls: counts.calls ?? 0,
  failures: counts.failures ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  cached_tokens: counts.cached_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  charged: formatYuan(amounts.charged ?? 0n),
});

function printText(terminal: Terminal, view: CustomerView): void {
  const { account, isOff, item, plan, attributes, written, keys, grants, use } = view;
  terminal.print(`account ${account}${isOff ? ', switched off' : ''}`);
  terminal.printTable([
    ['  available', `${formatYuan(item.available)} yuan`],
    ['  reserved', `${formatYuan(reservedOf(item))} yuan, for ${item.open.size} calls under way`],
    ['  spent', `${formatYuan(item.spent)} yuan, ${item.settled} calls`],
    ['  granted', `${formatYuan(item.granted)} yuan`],
    ['  used', `${useText(use.sum)}, ${use.isWhole ? `in the last ${useDays} days` : `since ${use.from}`}`],
    ...use.models
      .slice(0, modelsShown)
      .map(({ model, figures }) => ['', `${model}: ${useText(figures)}${tokensText(figures)}`]),
    ...(use.models.length > modelsShown
      ? [['', `and ${use.models.length - modelsShown} models more: --json has all, also by day`]]
      : []),
    ['  plan', plan ? planText(plan) : 'none'],
    ...(plan?.items ?? []).map((entry) => [
      '',
      `${entry.name}: ${entry.used} of ${entry.value < 0 ? 'unlimited' : entry.value} calls, resets ${isoTime(entry.resets_at * 1000)}`,
    ]),
    ...Object.entries(attributes).map(([name, value]) => [`  ${name}`, cellText(value)]),
    ...(written._at === undefined ? [] : [['  written', writtenText(written)]]),
    ...keys.slice(0, keysShown).map((key, at) => [at === 0 ? '  keys' : '', keyText(key)]),
    ...grants.slice(0, grantsShown).map((grant, at) => [at === 0 ? '  grants' : '', grantText(grant)]),
  ]);
}

const useText = ({ counts, amounts }: DailyFigures): string =>
  `${formatYuan(amounts.charged ?? 0n)} yuan, ${counts.calls ?? 0} calls, ${counts.failures ?? 0} failed`;

const tokensText = ({ counts }: DailyFigures): string =>
  `, ${counts.prompt_tokens ?? 0} tokens in (${counts.cached_tokens ?? 0} cached), ${counts.completion_tokens ?? 0} out`;

const planText = ({ level, until }: AccountPlan): string =>
  `level ${level}${until === null ? '' : `, until ${isoTime(until * 1000)}`}`;

const keyText = ({ row, state, why }: KeyView): string =>
  `${hintText(row['hint'])} (hash ${shortHash(row['hash'])}): ${state}${state === 'usable' ? `, ${why}` : ''}`;

/** What stands in the place of an amount, and is none, may be anything. */
const amountText = ({ amount }: WrittenGrant): string => (parseYuan(amount) === undefined ? '?' : amount);

function grantText(grant: WrittenGrant): string {
  const { grantId, applied, problem } = grant;
  const amount = amountText(grant);
  if (problem !== undefined) return `${grantId}: ${amount} yuan, not used: ${problem}`;
  return `${grantId}: ${amount} yuan, ${applied === undefined ? 'not applied yet' : `applied ${applied}`}`;
}

const writtenText = ({ _by, _at }: CustomerView['written']): string =>
  `${textOf(_at)}${_by === undefined ? '' : ` by ${textOf(_by)}`}`;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const cellText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
