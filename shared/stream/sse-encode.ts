/** A server-sent event without a name, as Chat Completions streams use it. `data` has no line breaks (it is JSON). */
export const dataFrame = (data: string): string => `data: ${data}\n\n`;

/** A named server-sent event, as Responses streams use it. */
export const eventFrame = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`;

/** A comment. Clients ignore it; proxies count it as traffic and keep the connection open. */
export const commentFrame = (text: string): string => `: ${text}\n\n`;
