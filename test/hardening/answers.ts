import { expect } from 'vitest';

/** An event stream's data frames, parsed; the last one must be `[DONE]`, which is omitted. */
export function framesOf(text: string): Record<string, unknown>[] {
  const data = text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => frame.slice('data: '.length));
  expect(data.at(-1)).toBe('[DONE]');
  expect(data.filter((frame) => frame === '[DONE]')).toHaveLength(1);
  return data.slice(0, -1).map((frame) => JSON.parse(frame) as Record<string, unknown>);
}

interface Chunk {
  choices?: { delta?: { content?: string } }[];
}

/** The words of an event stream. */
export const streamedText = (frames: Record<string, unknown>[]): string =>
  frames.map((frame) => (frame as Chunk).choices?.[0]?.delta?.content ?? '').join('');

/** Every error has exactly these four keys. */
export function expectErrorBody(text: string, type: string, code: string): void {
  const body = JSON.parse(text) as { error: Record<string, unknown> };
  expect(Object.keys(body)).toEqual(['error']);
  expect(Object.keys(body.error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
  expect(body.error).toMatchObject({ type, code });
  expect(String(body.error['message']).length).toBeGreaterThan(10);
}
