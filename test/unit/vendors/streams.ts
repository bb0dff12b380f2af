import type { VendorReply } from '../../../infra/local/vendors/vendor.ts';
import { textOf, type Json } from './rig.ts';

/** The JSON of each server-sent event, in order. */
export const eventsOf = (reply: VendorReply): Json[] =>
  textOf(reply)
    .split('\n')
    // A line separator inside a text does not end the line.
    .filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json);

/** The deltas of a chat stream. */
export const deltasOf = (reply: VendorReply): Json[] =>
  eventsOf(reply).flatMap(
    ({ choices }) => (choices as { delta: Json }[] | undefined)?.map(({ delta }) => delta) ?? [],
  );

/** Pieces of calls in a chat stream, in order. */
export const callPiecesOf = (reply: VendorReply): Json[] =>
  deltasOf(reply).flatMap(({ tool_calls: calls }) => (calls as Json[] | undefined) ?? []);

export const joined = (reply: VendorReply, field: string): string =>
  deltasOf(reply)
    .map((delta) => (delta[field] as string | undefined) ?? '')
    .join('');
