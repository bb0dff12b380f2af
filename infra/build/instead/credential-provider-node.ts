/**
 * In functions, instead of the SDK's default chain: Lambda passes credentials in environment variables, and the chain adds 38 KB
 * of files, processes, SSO and metadata services to each start.
 */
export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env';
