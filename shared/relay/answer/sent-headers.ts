/** Says in headers and log what became of a call's fields. Clients choose names of fields, so names are checked. */
import type { SentFacts } from '../../endpoints/endpoint.ts';

const namesMax = 20;
const name = /^[\w.[\]-]{1,64}$/;

/** The fields that were not sent, each once. Undefined: all were sent. */
export function droppedNames({ dropped }: Pick<SentFacts, 'dropped'>): string[] | undefined {
  const names = [...new Set(dropped)].filter((field) => name.test(field)).slice(0, namesMax);
  return names.length > 0 ? names : undefined;
}

export function sentHeaders(sent: SentFacts): Record<string, string> {
  const { effort = '', toolChoice = '' } = sent;
  const dropped = droppedNames(sent);
  return {
    ...(dropped && { 'x-relay-dropped': dropped.join(', ') }),
    ...(name.test(effort) && { 'x-relay-effort': effort }),
    ...(name.test(toolChoice) && { 'x-relay-tool-choice': toolChoice }),
  };
}
