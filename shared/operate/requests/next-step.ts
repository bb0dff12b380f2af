/** View: what an operator does about a request that was refused, failed or was slow. */
import { lineOf, type LoggedRequest } from './explain-request.ts';
import { slowMs } from '../../relay/ports/telemetry.ts';
import type { Target } from '../operator-ports.ts';
import { formatStackOption, quoteShellWord } from '../plan.ts';

/** What words in braces stand for. `unread`: the last channel that was tried and not asked, for want of its secret. */
interface Known extends Record<'account' | 'model' | 'channel' | 'unread', string | undefined> {
  onStack: string;
}

/**
 * The first whose pattern fits code and reason. `{channel}` is the channel of the line, `{model|it}` the model, or `it` where the
 * line names none, `<words>` a command of the tool.
 */
const advice: readonly [RegExp, string][] = [
  // An upstream's own code may be one of the relay's, too.
  [
    /^context_length_exceeded /,
    'the prompt is longer than the model takes: a shorter one, or an alias with a longer model',
  ],
  [
    /upstream_(refused|status)_404$/,
    '{channel} has no such address, or no model of this name: its row in channels, endpoint (most end in /v1) and mapper of {model|the model}; <channel sync {channel} --dry-run> lists what it has',
  ],
  [
    / upstream_refused_\d+$/,
    'the upstream refused the request itself: the customer changes the field that its error names',
  ],
  [
    /upstream_secret unread$/,
    'the secret of {unread} is not there or cannot be read, so it was not asked: <check> names the reference; <secret new NAME> stores it, and on one machine the variable of env: is set before the start',
  ],
  [/ quota_insufficient$/, 'the balance is too low: <grant new {account} AMOUNT --reason WHY>'],
  [
    / budget_(spent|reserved)$/,
    "the key's budget is used up: its row in keys, attribute budget; <key list>, then <key set HASH budget.amount=YUAN>",
  ],
  [
    / balance_reserved$/,
    'calls under way hold the balance: it comes back by itself; what is there: <customer show {account}>',
  ],
  [/ limit_(rate|concurrency)$/, 'a limit of the key: its row in keys, rpm or max_concurrency (<key list>)'],
  [
    / limit_(account_\w+|open_entries)$/,
    'a limit of the account: row {account} in accounts, or the setting limits',
  ],
  [
    /^invalid_api_key /,
    "the key is not one of this relay, or is not usable: <key check KEY> with the customer's key",
  ],
  [
    /^(model_not_allowed|official_not_allowed) /,
    'the key may not call {model|this}: its row in keys, models and official',
  ],
  [
    /^model_not_found no_price$/,
    'no rule of charges that can be read prices {model|the model}, so its calls are refused (<check> names rows with mistakes): <charge new type=token-billing models={model|MODEL} input=YUAN output=YUAN>',
  ],
  [
    /^model_not_found /,
    'no enabled channel serves {model|the model}, or it has no price: <channel list>, <charge explain {model|MODEL}>',
  ],
  [/^relay_closed /, 'the setting relay_closed closes the relay for all'],
  [
    /^(insufficient_quota|upstream_unavailable) upstream_account|_(401|402|403)\b|upstream_secret\b/,
    'our account or key at the upstream of {channel} is refused or empty: <channel test {channel}>, then <secret set NAME>',
  ],
  [/upstream_secret_store/, 'the secret store did not answer: <doctor>'],
  [
    /upstream_connect/,
    '{channel} cannot be reached: its row in channels, endpoint; <channel test {channel}>',
  ],
  [/upstream_loop/, '{channel} leads back to this relay: its row in channels, endpoint'],
  [
    /first_content_timeout/,
    '{channel} began no answer in time: its row in channels, first_content_seconds; <channel test {channel}>',
  ],
  [
    /upstream_(timeout|deadline)/,
    '{channel} was too slow: its row in channels, time-outs, or the setting limits',
  ],
  [
    /_429\b|all_channels_cooling/,
    'the upstreams of {model|it} limit their rate: add a channel or a secret (<channel new ID>)',
  ],
  [
    /upstream_/,
    'the upstream failed: <channel test {channel}>; how often: <request list --channel {channel} --status failed --since 1h>',
  ],
  [
    /^internal /,
    'a fault of the relay: the line `fault` with this request_id has its frames (saved query "Faults, with frames")',
  ],
  [
    / not_in_tariff$/,
    'a rule, an alias, a channel or a setting was edited between its acceptance and its run. Nothing was charged: the customer sends it again',
  ],
  [
    / background_late$/,
    'its run began more than a minute after it was accepted. Nothing was charged; <doctor> shows whether functions are throttled',
  ],
  [
    / store_unavailable$/,
    'the tables did not answer; nothing was charged. Alarms of the tables say more: docs/observability.md',
  ],
];

const fillStep = (text: string, known: Known): string =>
  text
    .replaceAll(/<([^>]+)>/g, `npx --no relay-ops $1${known.onStack}`)
    .replaceAll(
      /\{(\w+)(?:\|([^}]*))?\}/g,
      (_, name: string, other = '') => known[name as keyof Known] ?? other,
    );

/** Undefined: there is nothing to do. */
export function adviseNextStep(logged: LoggedRequest, target: Target): string | undefined {
  const line = lineOf(logged);
  const { account = 'ACCOUNT', code = '', reason = '', attempts = [] } = line;
  const channel = !line.channel || line.channel === 'none' ? 'CHANNEL' : line.channel;
  // An upstream that was asked and refused the key has said something.
  const unread = attempts.findLast((one) => one.outcome === 'upstream_secret' && !one.code)?.channel;
  const said = `${code} ${reason}${unread === undefined ? '' : ' unread'}`;
  const known = {
    account: quoteShellWord(account),
    model: line.model || undefined,
    channel,
    unread,
    onStack: formatStackOption(target),
  };
  if (code !== '' || reason !== '')
    return fillStep(
      advice.find(([pattern]) => pattern.test(said))?.[1] ??
        'the customer changes the request: the error that it got names the field',
      known,
    );
  const waitedMs = attempts[0]?.at ?? 0;
  if (waitedMs > slowMs)
    return fillStep(
      `it waited ${Math.round(waitedMs / 1000)} s before a channel was asked, so no channel is at fault: <doctor> shows whether functions are throttled`,
      known,
    );
  if (line.FirstContentMs !== undefined && line.FirstContentMs > slowMs)
    return fillStep(
      'it began late: <request list --channel {channel} --status slow --since 1h> shows whether it is the channel; its row in channels has priority and weight',
      known,
    );
  if (line.retries)
    return fillStep(
      'another channel answered, so the customer saw nothing of it; how often: <channel test {channel}>',
      { ...known, channel: attempts[0]?.channel ?? channel },
    );
  if (line.end === 'client_gone')
    return 'the client left before the end: its own time-out, or somebody stopped it. What was made is charged.';
  return undefined;
}
