/** Commands that change one channel, and switch it. */
import type { Command } from 'commander';
import { planSwitchChannel } from '../../../../shared/operate/channels/switch-channel.ts';
import type { CommandContext } from '../command/command-context.ts';
import { configWriting, waiting, type WaitOption } from './config-writing.ts';
import { addSet, addShow, type RowGroup } from './row-commands.ts';

const channels: RowGroup = { table: 'channels', noun: 'a channel', keyOf: (written) => written };

export function addChannelEdits(channel: Command, context: CommandContext): void {
  addShow(channel, context, channels);
  addSet(channel, context, channels);
  for (const on of [true, false])
    context.writing(
      waiting(
        channel
          .command(on ? 'on' : 'off')
          .description(
            on ? 'switch a channel on' : 'switch a channel off; says which models nobody else serves',
          )
          .argument('<id>', 'as `channel list` shows it'),
      ),
      async (run, id: string, options: WaitOption) =>
        configWriting(run, await planSwitchChannel(run.ports, { id, on }), options),
    );
}
