/** Attributes of an item as DynamoDB's wire has them. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Attributes = Record<string, AttributeValue>;
