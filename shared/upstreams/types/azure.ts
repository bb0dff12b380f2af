import { isAzureV1 } from './channel-row-type.ts';
import type { ChannelType } from '../channel-type.ts';

/** Versions before it refuse `stream_options`. */
const usageSince = '2024-08-01';

/** Azure OpenAI: the deployment is named in the path of dated versions, and as the model in the newer form. */
export const azure: ChannelType = {
  address({ endpoint, api_version: version }, deployment) {
    const query = version === undefined ? '' : `?api-version=${encodeURIComponent(version)}`;
    if (isAzureV1(endpoint)) return `${endpoint}/chat/completions${query}`;
    const base = endpoint.replace(/\/openai$/, '');
    return `${base}/openai/deployments/${encodeURIComponent(deployment)}/chat/completions${query}`;
  },
  credentials: (secret) => ({ 'api-key': secret }),
  limitField: () => 'max_completion_tokens',
  tellsUsage: ({ api_version: version }) =>
    version === undefined || !/^\d{4}-\d{2}-\d{2}/.test(version) || version >= usageSince,
  /** The deployment stands in the row, not in the caller's request. */
  ownFault: (status, error) =>
    status === 404 && error['code'] === 'DeploymentNotFound' ? 'channel' : undefined,
};
