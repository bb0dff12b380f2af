/** Explains AWS errors to operators: what is wrong and what to do. */
import { StoreUnavailable } from '../../../shared/relay/ports/stores/store-errors.ts';
import { Failure } from '../../../shared/operate/operator-failure.ts';
import type { Target } from '../../../shared/operate/operator-ports.ts';

const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT']);
const throttled =
  /^(Throttling|ThrottlingException|ProvisionedThroughputExceededException|RequestLimitExceeded)$/;
const unauthorised = new Set([
  'CredentialsProviderError',
  'ExpiredTokenException',
  'UnrecognizedClientException',
  'InvalidSignatureException',
  'TokenProviderError',
]);

/**
 * Converts an error of a store to a Failure that states what is wrong and what to do.
 * @param where name of the store or endpoint that failed
 */
export function explainStoreError(
  error: unknown,
  target: Target,
  where = target.endpoint ?? 'DynamoDB',
): Failure {
  if (error instanceof StoreUnavailable && error.cause !== undefined)
    return explainStoreError(error.cause, target, where);
  if (!(error instanceof Error)) return new Failure(`${where} could not be reached`);
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ECONNRESET')
    return new Failure(
      `${where} broke off before it answered: what was asked may be done. Look, or repeat the command`,
    );
  if (throttled.test(error.name))
    return new Failure(
      `${where} takes no more requests for now (${error.name}): repeat the command in a minute`,
    );
  if (unreachable.has(code) || error.name === 'TimeoutError') {
    return new Failure(
      target.local
        ? `no tables answer at ${where}: run \`npm start\` first, or name a deployed stack with --stack`
        : `${where} does not answer (${code || 'time-out'}): is the network up, is the region right?`,
    );
  }
  if (error.name === 'ResourceNotFoundException') {
    return new Failure(
      target.local
        ? `${where} has no tables named ${target.stack}-*: \`npm start\` makes those of the stack relay`
        : `there is no stack ${target.stack} in this account and region: see --stack, AWS_PROFILE and AWS_REGION`,
    );
  }
  if (unauthorised.has(error.name)) {
    return new Failure('no valid AWS credentials: set AWS_PROFILE, or run `aws sso login`');
  }
  if (error.message === 'Region is missing') {
    return new Failure('no AWS region: set AWS_REGION, or AWS_PROFILE to a profile that has one');
  }
  return new Failure(`${where}: ${error.name}: ${error.message}`);
}
