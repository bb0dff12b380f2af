/** Calls of the local stack to its emulator. Must not import the SDK: loading and warming it up took a third of the runner's start. */
import { createAwsCalls, dynamodb, type AwsCalls } from '../../../shared/adapters/aws/aws-calls.ts';
import { localAccess } from './local-options.ts';

/** The emulator is on the same machine, which may be busy. */
const times = { attempts: 4, connectMsMax: 10_000, tryMsMax: 30_000 };

export const createTableCalls = (endpoint: string): AwsCalls =>
  createAwsCalls({ service: dynamodb, aws: localAccess, endpoint, ...times });

/** Returns records in the format of Lambda's events, with bytes in base64. */
export const createStreamCalls = (endpoint: string): AwsCalls =>
  createAwsCalls({
    service: { ...dynamodb, target: 'DynamoDBStreams_20120810' },
    aws: localAccess,
    endpoint,
    ...times,
  });
