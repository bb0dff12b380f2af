/** The settings of every SDK client in the operators' tools. Functions that answer calls must never import a client. */
import type { AwsCredentials } from '../system/environment.ts';
import { userAgent } from './aws-calls.ts';

export interface AwsCaller {
  /** Throws when the environment has no region or no credentials. */
  aws: () => Promise<{ region: string; credentials: AwsCredentials }>;
  /** `AWS_ENDPOINT_URL_<SERVICE>` and `AWS_ENDPOINT_URL` override addresses. */
  environment: NodeJS.ProcessEnv;
}

const timeoutMsMax = 10_000;

/** @param service as in `AWS_ENDPOINT_URL_<SERVICE>` */
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
    // A retry could fail on what the first try wrote, for example because the parameter already exists.
    maxAttempts: 1,
    requestHandler: { requestTimeout: timeoutMs, throwOnRequestTimeout: true, socketTimeout: timeoutMs },
  };
}
