/** Nulls mean absent in Chat Completions, and some upstreams refuse them. */
import type { JsonRecord } from '../../../wire/json-record.ts';

export const withoutNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null && value !== undefined));
