/** Unpacks what is compressed in callers' files, which are read to know what they may cost. */
export type { Inflate } from '../../billing/estimate/pdf-size.ts';
