/** A call of which pieces come. */
import type { JsonRecord } from '../../../../wire/json-record.ts';
import { JsonScan } from './json-scan.ts';

export interface OpenCall {
  /** The index that clients see: dense, in the order in which calls are shown. Undefined: not shown yet. */
  index: number | undefined;
  readonly upstreamIndex: number | undefined;
  readonly upstreamId: string | undefined;
  /** The number of the delta that it began in. */
  readonly delta: number;
  kind: 'function' | 'custom';
  /** It was taken out of its wrapper and shown whole. */
  unwrapped: boolean;
  name: string;
  /** All argument text so far. */
  text: string;
  /** What of it clients have not got: they need the name in the first piece. */
  unsent: string;
  readonly scan: JsonScan;
  /** The text came as `{}`, which some upstreams send before the real arguments. */
  placeholder: boolean;
  /** The complete arguments in canonical form, made at the first repeat. */
  canonical: string | undefined;
  extra: JsonRecord | undefined;
}

export const openCall = (index: number | undefined, id: string | undefined, delta: number): OpenCall => ({
  index: undefined,
  upstreamIndex: index,
  upstreamId: id,
  delta,
  kind: 'function',
  unwrapped: false,
  name: '',
  text: '',
  unsent: '',
  scan: new JsonScan(),
  placeholder: false,
  canonical: undefined,
  extra: undefined,
});
