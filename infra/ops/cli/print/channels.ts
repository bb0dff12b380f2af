/** Prints channels and the answers of their upstreams. */
import type { ListedChannel } from '../../../../shared/operate/channels/list-channels.ts';
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

export function printSyncPlan({ print }: Terminal, { added, removed, effect }: SyncPlan): void {
  for (const model of added) print(`+ ${model}`);
  for (const model of removed) print(`- ${model}`);
  effect.forEach(print);
}
