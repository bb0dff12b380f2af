/** The head of a response as attributes of its item. Attributes that a head does not have are absent. */
import type {
  BackgroundState,
  ResponseHead,
  ResponseStatus,
} from '../../../relay/ports/stored/stored-response.ts';
import type { ResponseItem } from './response-items.ts';

export const headAttributes = [
  'account',
  'id',
  'status',
  'created',
  'expires',
  'ancestors',
  'turn',
  'length',
  'streamed',
  'run',
  'until',
  'events',
  'events_until',
] as const;

/** Nothing more happens to it. */
export const hasEnded = (status: ResponseStatus): boolean => status !== 'queued' && status !== 'in_progress';

export const itemOfHead = ({ background, ...head }: ResponseHead): ResponseItem => ({
  account: head.account,
  id: head.id,
  status: head.status,
  created: head.createdAt,
  expires: head.expires,
  ancestors: [...head.ancestors],
  turn: head.turn,
  length: head.conversationLength,
  streamed: background?.streamed,
  run: background?.run,
  until: background?.until,
  events: background?.events,
  events_until: background?.eventsUntil,
});

/** Throws when an attribute has an unexpected form. */
export function headOfItem(item: ResponseItem): ResponseHead {
  const ancestors = item['ancestors'];
  return {
    account: textOf(item, 'account'),
    id: textOf(item, 'id'),
    status: textOf(item, 'status') as ResponseStatus,
    createdAt: numberOf(item, 'created'),
    expires: numberOf(item, 'expires'),
    ancestors: Array.isArray(ancestors) ? ancestors.map(String) : [],
    turn: numberOf(item, 'turn'),
    conversationLength: numberOf(item, 'length'),
    ...(item['until'] !== undefined && { background: backgroundOf(item) }),
  };
}

function backgroundOf(item: ResponseItem): BackgroundState {
  const { run, events, events_until: eventsUntil } = item;
  return {
    streamed: item['streamed'] === true,
    until: numberOf(item, 'until'),
    ...(typeof run === 'string' && { run }),
    ...(typeof events === 'number' && { events }),
    ...(typeof eventsUntil === 'number' && { eventsUntil }),
  };
}

function textOf(item: ResponseItem, name: string): string {
  const text = item[name];
  if (typeof text !== 'string') throw new Error(`responses: ${name} is not a text`);
  return text;
}

function numberOf(item: ResponseItem, name: string): number {
  const number = item[name];
  if (typeof number !== 'number') throw new Error(`responses: ${name} is not a number`);
  return number;
}
