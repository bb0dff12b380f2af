import type { Clock } from '../../shared/relay/ports/host.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';
import type { Ask, Asked } from './seeded-client.ts';

/** What the relay's log says of a request. */
export interface Reported {
  /** It came to its end: nobody killed it before. */
  ended: boolean;
  /** Its answer was not stored, and its client knows. */
  notStored: boolean;
  /** Its result is not there for repeats. */
  notKept: boolean;
}

export interface Owned {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** A try that got no answer may have been done. */
  tries: number;
}

export type EndpointName = 'responses' | 'chat/completions';

/** Where the story of one seed is played: the relay, and what befalls it. */
export interface Stage {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly clock: Clock;
  /** Of the upstream's answer to `input`. */
  readonly pieces: number;
  readonly answerMs: number;
  /** What is asked, as the upstream understands it. */
  readonly input: string;
  /** Asks once, whatever befalls. */
  readonly ask: Ask;
  /** Asks again while processes and stores fail. */
  own(asked: Asked): Promise<Owned>;
  /** Strikes the process that answers this story's call, or its store, if that is its fate. */
  strike(at: EndpointName | 'background'): Promise<void>;
  /** Once its end is logged, or can no longer come because its process was killed. */
  readonly strangersKey: string;
  reportedEnd(requestId: string, at: EndpointName): Promise<Reported>;
  /** Every path of a response, asked by another account. */
  stranger(id: string): Promise<void>;
  /** To be looked at again when everything has expired. */
  remember(id: string): void;
}

/** What came of a story. */
export interface Story {
  kind: string;
  status: string | undefined;
  /** How often a client was cut off, or went away. */
  cuts: number;
  calls: number;
}
