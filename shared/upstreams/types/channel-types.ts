/**
 * The registry of channel types: by their name in rows, the code that answers calls and the setup for configuration
 * and operators.
 */
import { anthropic, anthropicSetup } from './anthropic.ts';
import { azure, azureSetup } from './azure.ts';
import { bedrock, bedrockSetup } from './bedrock.ts';
import { gemini, geminiSetup } from './gemini.ts';
import { openai, openaiSetup } from './openai.ts';

export const channelTypes = { openai, anthropic, gemini, azure, bedrock };

export const channelSetups = {
  openai: openaiSetup,
  anthropic: anthropicSetup,
  gemini: geminiSetup,
  azure: azureSetup,
  bedrock: bedrockSetup,
} satisfies Record<keyof typeof channelTypes, unknown>;

export type ChannelTypeName = keyof typeof channelTypes;
export type OwnAttributeName = {
  [Type in ChannelTypeName]: keyof (typeof channelSetups)[Type]['attributes'];
}[ChannelTypeName];

/** The type of a row without `type`. */
export const defaultChannelType: ChannelTypeName = 'openai';
