/** Reads the id of a request as a client saw it, whole or its beginning. */
import { requestTimeMs } from '../../wire/request-id.ts';
import { usageFailure } from '../operator-failure.ts';

export interface AskedId {
  /** 10 to 26 characters. */
  text: string;
  isWhole: boolean;
  /** When the request came, in epoch milliseconds. */
  timeMs: number;
}

const idLength = 26;

/** Throws a Failure. The first 10 characters are the time, so no shorter beginning says where to look. */
export function askedId(written: string): AskedId {
  const text = written
    .trim()
    .toLowerCase()
    .replace(/^(chatcmpl|resp|req)[-_]/, '');
  const timeMs = text.length < 10 ? undefined : requestTimeMs(text.padEnd(idLength, '0'));
  if (timeMs === undefined)
    throw usageFailure(
      'a request id has 26 characters: the header x-request-id, or what follows chatcmpl-; its first 10 or more will do',
    );
  return { text, isWhole: text.length === idLength, timeMs };
}
