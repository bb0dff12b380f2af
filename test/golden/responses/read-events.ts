/** One event as the client reads it. */
export type ReadEvent = { type: string; sequence_number: number } & Record<string, unknown>;

/** Reads the frames of a Responses stream: events as JSON, comments unchanged. Throws on any other line. */
export function readFrames(text: string): (ReadEvent | string)[] {
  if (!text.endsWith('\n\n')) throw new Error('the stream does not end with a blank line');
  return text.slice(0, -2).split('\n\n').map(readFrame);
}

export const readEvents = (text: string): ReadEvent[] =>
  readFrames(text).filter((frame) => typeof frame !== 'string');

function readFrame(frame: string): ReadEvent | string {
  if (/^: \w+$/.test(frame)) return frame;
  const [, name, json] = /^event: ([a-z_.]+)\ndata: (\{.*\})$/.exec(frame) ?? [];
  const event = JSON.parse(json ?? 'null') as ReadEvent | null;
  if (!event || event.type !== name) throw new Error(`not an event of a Responses stream: ${frame}`);
  return event;
}
