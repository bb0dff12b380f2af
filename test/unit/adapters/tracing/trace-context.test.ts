import { expect, it } from 'vitest';
import { readTraceParent } from '../../../../shared/adapters/tracing/call-trace.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

it.each([
  ['as version 00 has it', `00-${traceId}-${spanId}-01`, true],
  ['not to be traced', `00-${traceId}-${spanId}-00`, false],
  ['with flags of later versions', `00-${traceId}-${spanId}-03`, true],
  ['of a later version with more fields', `cc-${traceId}-${spanId}-01-more`, true],
])('a header %s is read', (_how, header, sampled) => {
  expect(readTraceParent(header)).toEqual({ traceId, spanId, sampled });
});

it.each([
  ['absent', undefined],
  ['empty', ''],
  ['in capital letters', `00-${traceId.toUpperCase()}-${spanId}-01`],
  ['too short', `00-${traceId.slice(1)}-${spanId}-01`],
  ['of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['without a span', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['of version 00 with more fields', `00-${traceId}-${spanId}-01-more`],
  ['of the forbidden version', `ff-${traceId}-${spanId}-01`],
])('a header that is %s starts a new trace', (_how, header) => {
  expect(readTraceParent(header)).toBeUndefined();
});
