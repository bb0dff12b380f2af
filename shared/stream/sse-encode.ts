/** A server-sent event without a name, as Chat Completions streams use it. `data` has no line breaks (it is JSON). */
export const dataFrame = (data: string): string => `data: ${data}\n\n`;

const eventHead = (event: string): string => `event: ${event}\ndata: `;
const eventEnd = '\n\n';

/** A named server-sent event, as Responses streams use it. */
export const eventFrame = (event: string, data: string): string => eventHead(event) + data + eventEnd;

/** The same in pieces, which belong together: a frame would be a copy of long data. */
export const eventPieces = (event: string, data: string): string[] => [eventHead(event), data, eventEnd];

/** A comment. Clients ignore it; proxies count it as traffic and keep the connection open. */
export const commentFrame = (text: string): string => `: ${text}\n\n`;
