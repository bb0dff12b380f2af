/**
 * Attributes as DynamoDB has them. The SDK's marshalling is used everywhere but in the writes of a call (`quotas/`),
 * which are built from these: every call waits for two of them.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Attributes = Record<string, AttributeValue>;

export const numberAttribute = (value: bigint | number): AttributeValue => ({ N: String(value) });
export const textAttribute = (value: string): AttributeValue => ({ S: value });
