/** What an answer tells whoever keeps it. A recorder must never fail an answer, nor change it beyond saying that it is kept. */
import type { JsonRecord } from '../../wire/json-record.ts';

export interface AnswerRecorder {
  /** What of the keeping is said in headers, if they go out after `keep`. Absent: nothing. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Texts of the answer that belong together, in order, heartbeats included, whether or not the client still takes them. */
  wrote(batch: readonly string[]): void;
  /**
   * The whole answer, after its items and before its end are sent: resolves when it can be read by others, or will not
   * be. The same of an answer that fails after its client has seen it begin. Never rejects.
   */
  keep(whole: JsonRecord): Promise<void>;
  /** After the last text. `failed`: the answer as it failed, whether or not it was kept. Never rejects. */
  ended(failed: JsonRecord | undefined): Promise<void>;
  /** What is left to do once the call is paid. Never rejects; absent: nothing. */
  written?(): Promise<void>;
}
