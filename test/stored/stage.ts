import type { Clock } from '../../shared/relay/ports/host.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';
import type { Ask, Asked } from './seeded-client.ts';

/** The relay's log line of a request. */
export interface Reported {
  /** It ended normally, without a kill. */
  ended: boolean;
  /** Its answer was not stored, and its client was told. */
  notStored: boolean;
  /** Its result is not available for repeats. */
  notKept: boolean;
}

export interface Owned {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** An attempt without an answer may have succeeded. */
  tries: number;
}

export type EndpointName = 'responses' | 'chat/completions';

/** The environment of one seed's story: the relay and its faults. */
export interface Stage {
  readonly seed: number;
  readonly random: SeededRandom;
  readonly clock: Clock;
  /** The text of the upstream's answer to `input`. */
  readonly pieces: number;
  readonly answerMs: number;
  /** A request in the upstream's format. */
  readonly input: string;
  /** Sends one request, whatever happens. */
  readonly ask: Ask;
  /** Retries while processes and stores fail. */
  own(asked: Asked): Promise<Owned>;
  /** Injects this story's planned fault into the answering process or its store. */
  strike(at: EndpointName | 'background'): Promise<void>;
  /** Resolves once its end is logged, or impossible because its process was killed. */
  readonly strangersKey: string;
  reportedEnd(requestId: string, at: EndpointName): Promise<Reported>;
  /** Requests every path of a response with another account. */
  stranger(id: string): Promise<void>;
  /** Registers it for the check after everything has expired. */
  remember(id: string): void;
}

/** The result of a story. */
export interface Story {
  kind: string;
  status: string | undefined;
  /** How often a client was disconnected or left. */
  cuts: number;
  calls: number;
}
