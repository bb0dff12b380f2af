/** What a call gets that came round, or through too many relays. Loaded by the first such call: its words are in no start. */
import { refuse, type Refusal } from '../../relay/http/refusal.ts';
import { loopHeader } from '../../wire/ids.ts';

/** @param returns it came from this relay itself */
export const loopRefusal = (returns: boolean, hopsMax: number): Refusal =>
  refuse(
    'relay_loop',
    returns
      ? 'This call came from this relay itself: one of its channels leads back to it. Nothing was charged. Correct the endpoint of that channel.'
      : `This call passed ${hopsMax} relays before this one, which is as many as may be in a row. Nothing was charged.`,
    { headers: { [loopHeader]: '1', 'x-should-retry': 'false' } },
  );
