/** Prints channels and the answers of their upstreams. */
import {
  isFailing,
  isIdle,
  noActivity,
  type ActivityView,
  type ChannelActivity,
} from '../../../../shared/operate/channels/channel-activity.ts';
import type { ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
import type { ProbeResult } from '../../../../shared/operate/channels/probe/probe-channel.ts';
import type { ChannelTest } from '../../../../shared/operate/channels/test-channel.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { SyncPlan } from '../../../../shared/operate/channels/sync-models.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printChannels(terminal: Terminal, channels: ListedChannel[], view: ActivityView): void {
  const { channels: active, problems, since } = view;
  const activity = new Map(channels.map(({ id }) => [id, active.get(id.slice(0, 200)) ?? noActivity]));
  const of = (id: string) => activity.get(id) ?? noActivity;
  terminal.printList({
    columns: [
      'id',
      'state',
      'priority',
      'weight',
      'endpoint',
      'secret',
      'models',
      'problem',
      'warning',
      'last_call',
      'last_failure',
      'calls_14d',
      'failures_14d',
      'idle',
      'failing',
    ],
    rows: channels.map((channel) => withActivity(channel, of(channel.id), view)),
    table: () => [
      ['ID', 'STATE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'LAST CALL', 'FAILED', 'MODELS'],
      ...channels.map((channel) => [
        channel.id,
        isFailing(channel, of(channel.id)) ? 'failing' : channel.state,
        String(channel.priority ?? '-'),
        String(channel.weight ?? '-'),
        channel.endpoint ?? '-',
        channel.secret?.join(' ') || '-',
        of(channel.id).lastCall ?? '-',
        of(channel.id).lastFailure ?? '-',
        channel.models?.join(' ') || '-',
      ]),
    ],
    empty: 'no channels: see `npx --no relay-ops channel add --help`',
  });
  if (terminal.format !== 'text') return;
  problems.forEach(terminal.remark);
  for (const { id, state, problem, warning } of channels) {
    const { failing, lastCall } = of(id);
    if (isFailing({ state }, of(id)))
      terminal.remark(
        `${id} fails: all of its ${failing} calls of ${lastCall} did; \`channel test ${id}\` asks it`,
      );
    if (isIdle(state, of(id), view)) terminal.remark(`${id}: no call since ${since}`);
    if (problem !== undefined) terminal.remark(`${id} is not used: ${problem}`);
    if (warning !== undefined) terminal.remark(`${id}: ${warning}`);
  }
}

const withActivity = (channel: ListedChannel, activity: ChannelActivity, view: ActivityView): object =>
  Object.assign({}, channel, {
    last_call: activity.lastCall ?? null,
    last_failure: activity.lastFailure ?? null,
    calls_14d: activity.calls,
    failures_14d: activity.failures,
    // null: unknown.
    idle: isIdle(channel.state, activity, view) ?? null,
    failing: isFailing(channel, activity),
  });

/** Throws a Failure when no chat completion came back. */
export function printChannelTest(terminal: Terminal, { status, elapsedMs, answer, body }: ChannelTest): void {
  const { format, print, printJson } = terminal;
  if (format === 'json') printJson({ status, elapsed_ms: elapsedMs, answer: answer ?? null });
  print(`status ${status} after ${elapsedMs} ms`);
  if (answer === undefined) throw new Failure(`no chat completion came back: ${body || 'an empty body'}`);
  print(`answer (${answer.model}): ${answer.text || `nothing (${answer.ending})`}`);
}

/** In the order in which people ask. */
const capabilities = [
  'tools',
  'parallel_tools',
  'json_schema',
  'images',
  'usage_streaming',
  'system_anywhere',
  'efforts',
  'dialects',
] as const;

export function printProbe(
  { print, printTable, warn }: Terminal,
  { can, sent, unasked, warnings }: ProbeResult,
): void {
  printTable(capabilities.map((name) => [name, foundText(can[name])]));
  if (unasked.length > 0) print(`not asked, since no call was left: ${unasked.join(', ')}`);
  print(`${sent} calls were sent.`);
  warn(warnings);
  print('written as _can; live within 10 seconds.');
}

export const probeFacts = (result: ProbeResult | undefined) =>
  result
    ? { can: result.can, calls: result.sent, unasked: result.unasked, row_warnings: result.warnings }
    : {};

function foundText(found: boolean | string[] | undefined): string {
  if (found === undefined) return 'unknown';
  if (typeof found === 'boolean') return found ? 'yes' : 'no';
  return found.join(', ') || 'none';
}

export function printSyncPlan({ print }: Terminal, { added, removed }: SyncPlan): void {
  [...added.map((model) => `+ ${model}`), ...removed.map((model) => `- ${model}`)].forEach(print);
}
