/** What an answer tells whoever keeps it. A keeper must never fail an answer, nor change it beyond saying that it is kept. */
import type { JsonRecord } from '../../wire/json-record.ts';

export interface AnswerKeeper {
  /** A text of the answer, in order, heartbeats included, whether or not the client still takes it. */
  wrote(text: string): void;
  /**
   * The whole answer, after its items and before its end are sent: resolves when it can be read by others, or will not
   * be. Never rejects.
   */
  keep(whole: JsonRecord): Promise<void>;
  /** After the last text, also of an answer that failed: nothing is sent any more. Never rejects. */
  ended(failed: JsonRecord | undefined): Promise<void>;
}
