/** The events of a background response that clients saw, and checks that they form one complete stream. */

export function hold(condition: boolean, said: string): asserts condition {
  if (!condition) throw new Error(said);
}

const typeOf = (event: string): string => event.slice('event: '.length, event.indexOf('\n'));
const dataOf = (event: string): Record<string, unknown> =>
  JSON.parse(event.slice(event.indexOf('\ndata: ') + '\ndata: '.length)) as Record<string, unknown>;
export const responseOf = (events: string[]): { status: string } =>
  dataOf(events.at(-1) ?? '')['response'] as { status: string };
export const statusOf = (events: string[]): string => responseOf(events).status;

/** Numbered from 0, with one start and one end. */
export function isNumbered(events: string[]): void {
  const types = events.map(typeOf);
  const numbers = events.map((event) => dataOf(event)['sequence_number']);
  hold(
    numbers.every((number, i) => number === i),
    `numbered ${numbers.join()}`,
  );
  hold(types[0] === 'response.created', `it begins as ${types[0]}`);
  const ends = types.filter((type) => type === 'response.completed' || type === 'response.failed');
  hold(ends.length === 1 && ends[0] === types.at(-1), `it ends ${ends.join()}`);
}

function checkGrammar(events: string[]): void {
  isNumbered(events);
  hold(statusOf(events.slice(0, 1)) === 'queued', 'it does not begin queued');
  const hasFailed = typeOf(events.at(-1) ?? '') === 'response.failed';
  hold(hasFailed === (statusOf(events) === 'failed'), `it ends in ${events.at(-1)}`);
}

/** Each client saw the same as one without disconnects, and the end equals the stored response. */
export function isSeenAlike(seen: { clients: { events: string[] }[]; uncut: string[]; shown: string }): void {
  const { clients, uncut, shown } = seen;
  for (const { events } of clients)
    hold(
      JSON.stringify(events) === JSON.stringify(uncut),
      `a client saw\n${events.join('')}and not\n${uncut.join('')}`,
    );
  checkGrammar(uncut);
  const last = JSON.stringify(responseOf(uncut));
  hold(shown === last, `GET shows ${shown}, the last event ${last}`);
}
