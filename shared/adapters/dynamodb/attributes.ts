/** Attributes of an item in DynamoDB's wire format. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';

export type Attributes = Record<string, AttributeValue>;
