/** What every SDK client of operators' tools is created with. Functions that answer calls must never import a client. */
import type { AwsCredentials } from '../system/environment.ts';
import { userAgent } from './aws-calls.ts';

export interface AwsCaller {
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<{ region: string; credentials: AwsCredentials }>;
  /** `AWS_ENDPOINT_URL_<SERVICE>` and `AWS_ENDPOINT_URL` override addresses. */
  environment: NodeJS.ProcessEnv;
}

const timeoutMsMax = 10_000;

/** @param service the service in the name of its endpoint variable */
export function composeClientSettings(
  { aws, environment }: AwsCaller,
  service: string,
  timeoutMs = timeoutMsMax,
) {
  const endpoint = environment[`AWS_ENDPOINT_URL_${service}`] || environment['AWS_ENDPOINT_URL'];
  return {
    region: async () => (await aws()).region,
    credentials: async () => (await aws()).credentials,
    ...(endpoint && { endpoint }),
    customUserAgent: userAgent,
    // A repeated write would find its own first one, for example a parameter that already exists.
    maxAttempts: 1,
    requestHandler: { requestTimeout: timeoutMs, throwOnRequestTimeout: true, socketTimeout: timeoutMs },
  };
}
