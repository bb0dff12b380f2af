/** Prints channels and the answers of their upstreams. */
import type { ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
import type { ProbeResult } from '../../../../shared/operate/channels/probe/probe-channel.ts';
import type { SyncPlan } from '../../../../shared/operate/channels/sync-models.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printChannels(
  { print, printJson, printTable, remark }: Terminal,
  channels: ListedChannel[],
  { json }: JsonOption,
): void {
  if (json) return printJson(channels);
  if (channels.length === 0) return print('no channels: see `npm run ops -- channel add --help`');
  printTable([
    ['ID', 'STATE', 'PRIORITY', 'WEIGHT', 'ENDPOINT', 'SECRET', 'MODELS'],
    ...channels.map((channel) => [
      channel.id,
      channel.state,
      String(channel.priority ?? '-'),
      String(channel.weight ?? '-'),
      channel.endpoint ?? '-',
      channel.secret?.join(' ') || '-',
      channel.models?.join(' ') || '-',
    ]),
  ]);
  for (const { id, problem, warning } of channels) {
    if (problem !== undefined) remark(`${id} is not used: ${problem}`);
    if (warning !== undefined) remark(`${id}: ${warning}`);
  }
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

export function printProbe({ print, printTable }: Terminal, { can, sent, unasked }: ProbeResult): void {
  printTable(capabilities.map((name) => [name, foundText(can[name])]));
  if (unasked.length > 0) print(`not asked, since no call was left: ${unasked.join(', ')}`);
  print(`${sent} calls were sent.`);
}

function foundText(found: boolean | string[] | undefined): string {
  if (found === undefined) return 'unknown';
  if (typeof found === 'boolean') return found ? 'yes' : 'no';
  return found.join(', ') || 'none';
}

export function printSyncPlan({ print }: Terminal, { added, removed, effect }: SyncPlan): void {
  [...added.map((model) => `+ ${model}`), ...removed.map((model) => `- ${model}`), ...effect].forEach(print);
}
