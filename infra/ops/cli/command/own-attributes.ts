/** Options for the attributes that only some channel types have: `--api-version` for `api_version`. */
import type { Command } from 'commander';
import type { ChannelInput } from '../../../../shared/operate/channels/add-channel.ts';
import { ownAttributes, typesWith } from '../../../../shared/upstreams/types/channel-attributes.ts';

export const optionOf = (attribute: string): string => `--${attribute.replaceAll('_', '-')}`;

export function addOwnAttributes(command: Command): Command {
  for (const { name, attribute } of ownAttributes()) {
    command.option(
      `${optionOf(name)} <${name.split('_').at(-1)}>`,
      `${attribute.about} (${typesWith(name).join(', ')})`,
    );
  }
  return command;
}

/** The values of these options, by attribute name. */
export const ownAttributesIn = (command: Command): NonNullable<ChannelInput['attributes']> =>
  Object.fromEntries(
    ownAttributes().flatMap(({ name }) => {
      const option = command.options.find(({ long }) => long === optionOf(name));
      const value: unknown = option && command.getOptionValue(option.attributeName());
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
