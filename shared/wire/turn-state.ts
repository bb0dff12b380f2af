/**
 * State that a vendor wants back unchanged with the assistant turn that it came with: signatures, encrypted
 * reasoning, reasoning text. Clients never read it.
 */
import type { JsonRecord } from './json.ts';

/**
 * One part of a turn, in the order of the answer, so that the turn can be rebuilt exactly. `text`: a stretch of
 * visible text, by its length in UTF-16 code units, with the phase that the vendor gave it. `call`: a tool call, by its
 * index. `opaque`: what the vendor wants back; only the dialect that wrote it reads it.
 */
export type StatePart =
  | { readonly text: number; readonly phase?: string }
  | { readonly call: number }
  | { readonly opaque: JsonRecord };

/** The source of a state. Encrypted state is valid only there. */
export interface StateOrigin {
  readonly dialect: string;
  readonly channel: string;
  /** A fingerprint of the reference to the channel's secret; empty: the channel has none. */
  readonly secret: string;
  readonly model: string;
}

export interface TurnState {
  readonly origin: StateOrigin;
  /** The ids of the turn's tool calls as the client saw them, by index. */
  readonly callIds: readonly string[];
  /** Up to the last opaque one at least: what was sealed in the middle of a turn does not name what followed. */
  readonly parts: readonly StatePart[];
  /** The item in which its client has it. */
  readonly item?: string | undefined;
}

/** A conversation that a vendor stores, so that its client sends only new messages. */
export interface HeldThread {
  /** The vendor's id of the answer that the call continues. */
  readonly id: string;
  readonly origin: StateOrigin;
  /** `tokens`: the input as the vendor counted it. `tokensMax`: the most that input and answer can have. */
  readonly tokens: number;
  readonly tokensMax: number;
}

/** A change that a vendor made to the input, such as leaving reasoning out, in words. Source: OpenAI's SDK 7.57, `InputTransformation`. */
export interface InputTransformation {
  readonly type: string | undefined;
  readonly action: string | undefined;
  readonly reason: string | undefined;
  /** The id of the changed item. */
  readonly id: string | undefined;
}

/**
 * Cuts a turn's text into the stretches of its layout, and the text that followed them if the layout does not end with
 * text itself. Clients that keep messages apart may come back with a line feed between them. Undefined: the client
 * changed the text.
 */
export function stretchesOf(text: string, parts: readonly StatePart[]): string[] | undefined {
  const lengths = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  let partial: string[] | undefined;
  for (const separator of ['', '\n']) {
    const stretches: string[] = [];
    let at = 0;
    for (const length of lengths) {
      stretches.push(text.slice(at, at + length));
      at += length + separator.length;
    }
    const isExact = stretches.every((stretch, i) => stretch.length === lengths[i]);
    if (isExact && stretches.join(separator) === text) return stretches;
    if (isExact && separator === '') partial = stretches;
  }
  const followed = text.slice(partial?.join('').length);
  const endsWithText = 'text' in (parts.at(-1) ?? {});
  return endsWithText ? partial?.with(-1, `${partial.at(-1) ?? ''}${followed}`) : partial?.concat(followed);
}
