import type { AttributeValue } from '@aws-sdk/client-dynamodb-streams';
import type { _Record } from '@aws-sdk/client-dynamodb-streams';
import { localRegion } from '../host/identity.ts';

/** A record of a table's stream in the form that Lambda passes to a function. */
export interface StreamRecord {
  eventID: string;
  eventName: string;
  eventVersion: string;
  eventSource: string;
  awsRegion: string;
  eventSourceARN: string;
  dynamodb: {
    ApproximateCreationDateTime: number;
    Keys?: unknown;
    NewImage?: unknown;
    OldImage?: unknown;
    SequenceNumber: string;
    SizeBytes: number;
    StreamViewType: string;
  };
}

export function toStreamRecord(record: _Record, streamArn: string): StreamRecord {
  const { dynamodb } = record;
  return {
    eventID: record.eventID ?? '',
    eventName: record.eventName ?? '',
    eventVersion: record.eventVersion ?? '1.1',
    eventSource: 'aws:dynamodb',
    awsRegion: localRegion,
    eventSourceARN: streamArn,
    dynamodb: {
      ApproximateCreationDateTime: Math.floor((dynamodb?.ApproximateCreationDateTime?.getTime() ?? 0) / 1000),
      ...(dynamodb?.Keys && { Keys: imageToJson(dynamodb.Keys) }),
      ...(dynamodb?.NewImage && { NewImage: imageToJson(dynamodb.NewImage) }),
      ...(dynamodb?.OldImage && { OldImage: imageToJson(dynamodb.OldImage) }),
      SequenceNumber: dynamodb?.SequenceNumber ?? '',
      SizeBytes: dynamodb?.SizeBytes ?? 0,
      StreamViewType: dynamodb?.StreamViewType ?? '',
    },
  };
}

const imageToJson = (image: Record<string, AttributeValue>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(image).map(([name, value]) => [name, toJson(value)]));

/** Lambda's events are JSON, with bytes in base64. */
function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toJson(inner)]));
}
