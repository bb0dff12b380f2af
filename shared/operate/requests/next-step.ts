/** View: what an operator does about a request that was refused, failed or was slow. */
import { lineOf, type LoggedRequest } from './explain-request.ts';
import { slowMs } from '../../relay/ports/telemetry.ts';
import { shellWord } from '../plan.ts';

interface Known {
  account: string;
  model: string;
  channel: string;
  /** The last channel that was tried and not asked, for want of its secret. */
  unread: string | undefined;
}

const ops = (words: string): string => `npx --no relay-ops ${words}`;

/** The first whose pattern fits code and reason. */
const advice: readonly [RegExp, (known: Known) => string][] = [
  // An upstream's own code may be one of the relay's, too.
  [
    /^context_length_exceeded /,
    () => 'the prompt is longer than the model takes: a shorter one, or an alias with a longer model',
  ],
  [
    /upstream_(refused|status)_404$/,
    ({ channel, model }) =>
      `${channel} has no such address, or no model of this name: its row in channels, endpoint (most end in /v1) and mapper of ${model || 'the model'}; ${ops(`channel sync ${channel} --dry-run`)} lists what it has`,
  ],
  [
    / upstream_refused_\d+$/,
    () => 'the upstream refused the request itself: the customer changes the field that its error names',
  ],
  [
    /upstream_secret unread$/,
    ({ unread }) =>
      `the secret of ${unread} is not there or cannot be read, so it was not asked: ${ops('check')} names the reference; ${ops('secret put')} stores it, and on one machine the variable of env: is set before the start`,
  ],
  [
    / quota_insufficient$/,
    ({ account }) =>
      `the balance is too low: ${ops(`account grant ${shellWord(account)} AMOUNT --reason WHY`)}`,
  ],
  [
    / budget_(spent|reserved)$/,
    ({ account }) =>
      `the key's budget is used up: its row in keys, attribute budget; keys of ${account}: ${ops('key list')}`,
  ],
  [
    / balance_reserved$/,
    ({ account }) =>
      `calls under way hold the balance: it comes back by itself; what is there: ${ops(`account show ${shellWord(account)}`)}`,
  ],
  [
    / limit_(rate|concurrency)$/,
    () => `a limit of the key: its row in keys, rpm or max_concurrency (${ops('key list')})`,
  ],
  [
    / limit_(account_\w+|open_entries)$/,
    ({ account }) => `a limit of the account: row ${account} in accounts, or the setting limits`,
  ],
  [
    /^invalid_api_key /,
    () =>
      `the key is not one of this relay, or is not usable: ${ops('key check KEY')} with the customer's key`,
  ],
  [
    /^(model_not_allowed|official_not_allowed) /,
    ({ model }) => `the key may not call ${model || 'this'}: its row in keys, models and official`,
  ],
  [
    /^model_not_found no_price$/,
    ({ model }) =>
      `no rule of charges that can be read prices ${model || 'the model'}, so its calls are refused (${ops('check')} names rows with mistakes): ${ops(`charge set new type=token-billing models=${model || 'MODEL'} input=YUAN output=YUAN`)}`,
  ],
  [
    /^model_not_found /,
    ({ model }) =>
      `no enabled channel serves ${model || 'the model'}, or it has no price: ${ops('channel list')}, ${ops(`charge explain ${model || 'MODEL'}`)}`,
  ],
  [/^relay_closed /, () => 'the setting relay_closed closes the relay for all'],
  [
    /^(insufficient_quota|upstream_unavailable) upstream_account|_(401|402|403)\b|upstream_secret\b/,
    ({ channel }) =>
      `our account or key at the upstream of ${channel} is refused or empty: ${ops(`channel test ${channel}`)}, then ${ops('secret put')}`,
  ],
  [/upstream_secret_store/, () => `the secret store did not answer: ${ops('doctor')}`],
  [
    /upstream_connect/,
    ({ channel }) =>
      `${channel} cannot be reached: its row in channels, endpoint; ${ops(`channel test ${channel}`)}`,
  ],
  [/upstream_loop/, ({ channel }) => `${channel} leads back to this relay: its row in channels, endpoint`],
  [
    /first_content_timeout/,
    ({ channel }) =>
      `${channel} began no answer in time: its row in channels, first_content_seconds; ${ops(`channel test ${channel}`)}`,
  ],
  [
    /upstream_(timeout|deadline)/,
    ({ channel }) => `${channel} was too slow: its row in channels, time-outs, or the setting limits`,
  ],
  [
    /_429\b|all_channels_cooling/,
    ({ model }) =>
      `the upstreams of ${model} limit their rate: add a channel or a secret (${ops('channel add')})`,
  ],
  [
    /upstream_/,
    ({ channel }) =>
      `the upstream failed: ${ops(`channel test ${channel}`)}; how often: ${ops(`requests --channel ${channel} --status failed --since 1h`)}`,
  ],
  [
    /^internal /,
    () =>
      'a fault of the relay: the line `fault` with this request_id has its frames (saved query "Faults, with frames")',
  ],
  [
    / store_unavailable$/,
    () =>
      'the tables did not answer; nothing was charged. Alarms of the tables say more: docs/observability.md',
  ],
];

/** Undefined: there is nothing to do. */
export function nextStep(logged: LoggedRequest): string | undefined {
  const line = lineOf(logged);
  const { account = 'ACCOUNT', model = '', code = '', reason = '', attempts = [] } = line;
  const channel = !line.channel || line.channel === 'none' ? 'CHANNEL' : line.channel;
  // An upstream that was asked and refused the key has said something.
  const unread = attempts.findLast((one) => one.outcome === 'upstream_secret' && !one.code)?.channel;
  if (code !== '' || reason !== '') {
    const said = `${code} ${reason}${unread === undefined ? '' : ' unread'}`;
    const [, say] = advice.find(([pattern]) => pattern.test(said)) ?? [];
    return (
      say?.({ account, model, channel, unread }) ??
      'the customer changes the request: the error that it got names the field'
    );
  }
  if (line.FirstContentMs !== undefined && line.FirstContentMs > slowMs)
    return `it began late: ${ops(`requests --channel ${channel} --status slow --since 1h`)} shows whether it is the channel; its row in channels has priority and weight`;
  if (line.retries)
    return `another channel answered, so the customer saw nothing of it; how often: ${ops(`channel test ${attempts[0]?.channel ?? channel}`)}`;
  if (line.end === 'client_gone')
    return 'the client left before the end: its own time-out, or somebody stopped it. What was made is charged.';
  return undefined;
}
