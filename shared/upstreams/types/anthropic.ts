/** Anthropic's own API. Its OpenAI-compatible endpoint is for rows that choose that dialect. */
import { apiVersionAttribute, type ChannelSetup, type ChannelType, readModelPage } from '../channel-type.ts';

/** From this version on, keys are bearer tokens. */
const bearerSince = '2026-10-21';

const keyHeader = (secret: string): Record<string, string> => ({ 'x-api-key': secret });

export const anthropic: ChannelType<'api_version'> = {
  dialect: () => 'messages',
  // The version may be the client's.
  credentials: (secret, _channel, dialect, sent) =>
    dialect === 'messages' && (sent?.['anthropic-version'] ?? '') < bearerSince
      ? keyHeader(secret)
      : { authorization: `Bearer ${secret}` },
  apiVersion: ({ api_version: version }) => version,
  limitField: () => 'max_tokens',
  // Messages has it as `metadata.user_id`.
  endUserField: () => 'user',
  /**
   * Types that other statuses have, which some gateways in front of the API send with a 400. An account without
   * credit comes as `invalid_request_error`, which only its text tells from a caller's mistake: docs/channels.md.
   */
  ownFault: (_status, { type }) =>
    type === 'authentication_error' || type === 'billing_error' || type === 'permission_error'
      ? 'secret'
      : undefined,
};

export const anthropicSetup: ChannelSetup<'api_version'> = {
  attributes: { api_version: apiVersionAttribute },
  ownEndpoint: () => 'https://api.anthropic.com/v1',
  models: {
    address: ({ endpoint }, after) =>
      `${endpoint}/models?limit=1000${after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`}`,
    headers: (secret) => ({ ...keyHeader(secret), 'anthropic-version': '2023-06-01' }),
    read: readModelPage,
  },
  questions: [],
};
