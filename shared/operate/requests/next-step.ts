/** View: what an operator does about a request that was refused, failed or was slow. */
import { lineOf, type LoggedRequest } from './explain-request.ts';
import { slowMs } from '../../relay/ports/telemetry.ts';
import type { Target } from '../operator-ports.ts';
import { formatStackOption, quoteShellWord } from '../plan.ts';

/**
 * Values for the words in braces. `unread` is the last channel that was not asked because its secret could not be
 * read.
 */
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
    'the prompt exceeds the context window: shorten it, or use an alias that includes a model with a larger one',
  ],
  [
    /upstream_(refused|status)_404$/,
    '{channel} has a wrong endpoint or does not know {model|the model}: check endpoint (usually ends in /v1) and mapper of the channel; <channel sync {channel} --dry-run> lists its models',
  ],
  [
    / upstream_refused_\d+$/,
    'the upstream rejected the request as invalid: the customer must fix the field named in the error',
  ],
  [
    /upstream_secret unread$/,
    'the secret of {unread} is missing or unreadable, so it was skipped: find the reference with <check> and store it with <secret new NAME>; on a local stack, set the variable of env: before `npm start`',
  ],
  [/ quota_insufficient$/, 'the balance is too low: top up with <grant new {account} AMOUNT --reason WHY>'],
  [
    / budget_(spent|reserved)$/,
    'the budget that the message names is used up: raise it with <key set HASH budget.amount=YUAN>, or in <customer set ACCOUNT budgets=JSON>',
  ],
  [
    / balance_reserved$/,
    'calls in flight reserve the balance; it is released when they end: <customer show {account}>',
  ],
  [
    / limit_(rate|concurrency)$/,
    'the key reached its limit: change rpm or max_concurrency of the key (<key list>)',
  ],
  [
    / limit_(account_\w+|open_entries)$/,
    'the account reached its limit: change the limits of {account}, or the setting limits',
  ],
  [/^invalid_api_key /, "the key is unknown or not usable: run <key check KEY> with the customer's key"],
  [
    /^(model_not_allowed|official_not_allowed) /,
    'the key is not allowed to call {model|this}: change models or official of the key',
  ],
  [
    /^model_not_found no_price$/,
    '{model|the model} has no valid price, so its calls are refused (<check> lists invalid rules): <charge new type=token-billing models={model|MODEL} input=YUAN output=YUAN>',
  ],
  [
    /^model_not_found /,
    'no enabled channel serves {model|the model}, or it has no price: <channel list>, <charge explain {model|MODEL}>',
  ],
  [/^relay_closed /, 'the relay is closed by the setting relay_closed'],
  [
    /^(insufficient_quota|upstream_unavailable) upstream_account|_(401|402|403)\b|upstream_secret\b/,
    'the provider of {channel} rejects your account or API key, or it has no credit: <channel test {channel}>, then <secret set NAME>',
  ],
  [/upstream_secret_store/, 'the secret store did not respond: <doctor>'],
  [/upstream_connect/, '{channel} is unreachable: check its endpoint; <channel test {channel}>'],
  [/upstream_loop/, '{channel} points back to this relay: fix its endpoint'],
  [
    /first_content_timeout/,
    '{channel} did not start to answer in time: check first_content_seconds of the channel; <channel test {channel}>',
  ],
  [
    /upstream_(timeout|deadline)/,
    '{channel} was too slow: check the timeouts of the channel, or the setting limits',
  ],
  [
    /_429\b|all_channels_cooling/,
    'all upstreams of {model|it} are rate-limited: add a channel or a secret (<channel new ID>)',
  ],
  [
    /upstream_/,
    'the upstream failed: <channel test {channel}>; to see how often: <request list --channel {channel} --status failed --since 1h>',
  ],
  [
    /^internal /,
    'internal error of the relay: its stack trace is in the log line `fault` with this request_id (saved query "Faults, with frames")',
  ],
  [
    / background_late$/,
    'its run started more than a minute after acceptance. Nothing was charged; check for throttled functions with <doctor>',
  ],
  [
    / store_unavailable$/,
    'the tables did not respond; nothing was charged. See the alarms of the tables: docs/observability.md',
  ],
];

const fillStep = (text: string, known: Known): string =>
  text
    .replaceAll(/<([^>]+)>/g, `npx --no relay-ops $1${known.onStack}`)
    .replaceAll(
      /\{(\w+)(?:\|([^}]*))?\}/g,
      (_, name: string, other = '') => known[name as keyof Known] ?? other,
    );

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
        'the customer must change the request: the error names the field',
      known,
    );
  const waitedMs = attempts[0]?.at ?? 0;
  if (waitedMs > slowMs)
    return fillStep(
      `it waited ${Math.round(waitedMs / 1000)} s before the first attempt, so no channel is at fault: check for throttled functions with <doctor>`,
      known,
    );
  if (line.FirstContentMs !== undefined && line.FirstContentMs > slowMs)
    return fillStep(
      'the first content was late: see if the channel is slow with <request list --channel {channel} --status slow --since 1h>; change its priority or weight',
      known,
    );
  if (line.retries)
    return fillStep(
      'another channel answered, so the customer did not notice; test the failed one: <channel test {channel}>',
      { ...known, channel: attempts[0]?.channel ?? channel },
    );
  if (line.end === 'client_gone')
    return 'the client disconnected early, by its own timeout or a user. The part of the answer that was generated is charged.';
  return undefined;
}
