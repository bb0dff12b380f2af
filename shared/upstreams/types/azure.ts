/** Azure OpenAI. The deployment is part of the path in dated versions, and the model in the newer form. */
import { apiVersionAttribute, type ChannelSetup, type ChannelType } from '../channel-type.ts';

/** Earlier versions refuse `stream_options`. */
const usageSince = '2024-08-01';

/** The newer form needs no `api_version`. */
const isNewerForm = (endpoint: string): boolean => /\/openai\/v1\/*$/.test(endpoint);

export const azure: ChannelType<'api_version'> = {
  address({ endpoint, api_version: version }, { model: deployment, dialect, path }) {
    const query = version === undefined ? '' : `?api-version=${encodeURIComponent(version)}`;
    if (isNewerForm(endpoint)) return `${endpoint}${path}${query}`;
    const base = endpoint.replace(/\/openai$/, '');
    // Responses names the deployment in the body alone.
    if (dialect === 'responses') return `${base}/openai${path}${query}`;
    return `${base}/openai/deployments/${encodeURIComponent(deployment)}${path}${query}`;
  },
  credentials: (secret) => ({ 'api-key': secret }),
  // Some of the models refuse tools elsewhere.
  alsoSpeaks: ['responses', 'embeddings'],
  limitField: () => 'max_completion_tokens',
  // Fields of messages that it does not know are refused.
  quirks: () => ({
    acceptedEchoes: [],
    supportsCustomTools: true,
    packsVectors: true,
    takesDerivedFields: true,
  }),
  // Its older versions do not know `safety_identifier` [openai/openai-guardrails-python 37, 2025-10-30].
  endUserField: () => 'user',
  reportsUsage: ({ api_version: version }) =>
    version === undefined || !/^\d{4}-\d{2}-\d{2}/.test(version) || version >= usageSince,
};

export const azureSetup: ChannelSetup<'api_version'> = {
  attributes: {
    api_version: apiVersionAttribute,
  },
  problems: ({ endpoint, api_version: version }) =>
    endpoint === '' || version !== undefined || isNewerForm(endpoint)
      ? []
      : ['api_version: missing, expected one such as "2024-10-21" (or an endpoint that ends in /openai/v1)'],
  models: { unlisted: 'Azure lists models, but its channels serve deployments' },
  questions: [
    { attribute: 'endpoint', question: 'Address of the resource, with /openai/v1 if it has that' },
    {
      attribute: 'api_version',
      question: 'Version of the API',
      defaultAnswer: '2024-10-21',
      isNeedless: ({ endpoint }) => isNewerForm(endpoint),
    },
  ],
};
