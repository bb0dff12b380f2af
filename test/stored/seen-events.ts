/** What clients saw of a background response, and whether it is one whole stream. */

export function hold(condition: boolean, said: string): asserts condition {
  if (!condition) throw new Error(said);
}

const typeOf = (event: string): string => event.slice('event: '.length, event.indexOf('\n'));
const dataOf = (event: string): Record<string, unknown> =>
  JSON.parse(event.slice(event.indexOf('\ndata: ') + '\ndata: '.length)) as Record<string, unknown>;
export const responseOf = (events: string[]): { status: string } =>
  dataOf(events.at(-1) ?? '')['response'] as { status: string };
export const statusOf = (events: string[]): string => responseOf(events).status;

export function checkGrammar(events: string[]): void {
  const types = events.map(typeOf);
  const numbers = events.map((event) => dataOf(event)['sequence_number']);
  hold(
    numbers.every((number, i) => number === i),
    `numbered ${numbers.join()}`,
  );
  hold(types[0] === 'response.created', `it begins as ${types[0]}`);
  hold(
    (dataOf(events[0] ?? '')['response'] as { status: string }).status === 'queued',
    'it does not begin queued',
  );
  const ends = types.filter((type) => type === 'response.completed' || type === 'response.failed');
  hold(ends.length === 1 && ends[0] === types.at(-1), `it ends ${ends.join()}`);
  hold(
    (ends[0] === 'response.failed') === (statusOf(events) === 'failed'),
    `${ends[0]} is ${statusOf(events)}`,
  );
}
