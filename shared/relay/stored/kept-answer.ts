/**
 * Stores the answer of a call before its end is sent, also of one that fails after its client has seen it begin. Must never
 * fail the answer, nor hold it up for long, nor leave readable what the answer says is not stored.
 */
import type { StorageAsked } from '../../endpoints/endpoint.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { ChatCall } from '../call/call.ts';
import { Backoff } from '../money/backoff.ts';
import type { Clock, Random } from '../ports/host.ts';
import {
  ResponseTooLarge,
  type ResponseStore,
  ancestorsMax,
  type ResponseHead,
  type ResponseStatus,
} from '../ports/stored.ts';
import type { Log } from '../ports/telemetry.ts';
import type { AnswerRecorder } from '../answer/answer.ts';
import type { Conversation } from './conversation.ts';
import { storeSettings } from './may-store.ts';

const daySeconds = 24 * 60 * 60;

/** How long an answer's end waits for the store, and one that has to end because its time is up. */
const waitMsMax = 2_000;
const hurriedMsMax = 1_000;
/** How long it is tried to take back what is not stored, and where the call's own time is up. */
const takeBackMsMax = 5_000;
const hurriedTakeBackMsMax = 1_500;

export interface KeptAnswerParts {
  call: Pick<ChatCall, 'identity' | 'key' | 'snapshot' | 'signal'>;
  storage: StorageAsked;
  /** Undefined: a conversation begins. */
  conversation: Conversation | undefined;
  /** The state of the turn, sealed; undefined: it has none. */
  seal: () => string | undefined;
}

interface RecorderPorts {
  clock: Clock;
  random: Random;
  log: Log;
  responses: Pick<ResponseStore, 'put' | 'withdraw'>;
}

/** Why an answer is not stored. */
type Lost = 'too_large' | 'write_failed' | 'write_late';

export class KeptAnswer implements AnswerRecorder {
  /** Until it is known, what is intended. */
  stored = true;
  readonly #ports: RecorderPorts;
  readonly #parts: KeptAnswerParts;
  #tookBack: Promise<void> | undefined;

  constructor(ports: RecorderPorts, parts: KeptAnswerParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  get headers(): Record<string, string> {
    return this.stored ? {} : { 'x-relay-store': 'failed' };
  }

  wrote(): void {}

  async keep(whole: JsonRecord): Promise<void> {
    const { identity, key, signal } = this.#parts.call;
    const { clock, log } = this.#ports;
    const waitMs = signal.aborted ? hurriedMsMax : waitMsMax;
    const write = this.#write(whole, waitMs);
    const waiting = new AbortController();
    const late = clock.sleep(waitMs, waiting.signal).then(() => 'write_late' as const);
    const why = await Promise.race([write, late]);
    waiting.abort('over');
    this.stored = why === undefined;
    if (why === undefined) return;
    log.event('response_not_stored', { request_id: identity.requestId, account: key.account, why });
    // A try without a reply may have been applied, or may be still: from here on it is refused.
    if (why !== 'too_large')
      this.#tookBack = this.#takeBack(write, signal.aborted ? hurriedTakeBackMsMax : takeBackMsMax);
  }

  async ended(): Promise<void> {}

  /** The answer said that it is not stored: nobody should find it later. */
  async written(): Promise<void> {
    if (!this.#tookBack) return;
    await this.#tookBack;
  }

  /** Undefined: it is stored. Never rejects. */
  async #write(whole: JsonRecord, waitMs: number): Promise<Lost | undefined> {
    const { call, conversation, storage, seal } = this.#parts;
    const status = whole['status'] as ResponseStatus;
    try {
      const input = storage.input(call.identity.requestId);
      const head = headOf(call, { conversation, status, input, whole });
      // The state of a turn that was cut off may be a part of it.
      const body = { input, response: whole, seal: status === 'failed' ? undefined : seal() };
      await new Backoff(this.#ports, waitMs).until(() => this.#ports.responses.put({ head, body }));
      return undefined;
    } catch (error) {
      if (error instanceof ResponseTooLarge) return 'too_large';
      this.#ports.log.fault(call.identity.requestId, error);
      return 'write_failed';
    }
  }

  /** What cannot be taken back in time may be found by its account until it expires. Never rejects. */
  async #takeBack(write: Promise<unknown>, budgetMs: number): Promise<void> {
    const { clock, log, responses } = this.#ports;
    const { identity, key } = this.#parts.call;
    let isWithdrawn = false;
    const waiting = new AbortController();
    const takenBack = new Backoff(this.#ports, budgetMs)
      .until(() => responses.withdraw(key.account, responseId(identity)))
      .then(() => {
        isWithdrawn = true;
        // A write that is refused removes the parts that it wrote.
        return write;
      });
    try {
      await Promise.race([takenBack, clock.sleep(budgetMs, waiting.signal)]);
    } catch (error) {
      log.fault(identity.requestId, error);
    }
    waiting.abort('over');
    if (!isWithdrawn)
      log.event('response_not_taken_back', { request_id: identity.requestId, account: key.account });
  }
}

const responseId = ({ requestId }: ChatCall['identity']): string => `resp-${requestId}`;

interface StoredAnswer {
  conversation: Conversation | undefined;
  status: ResponseStatus;
  input: readonly JsonRecord[];
  whole: JsonRecord;
}

export function headOf(
  { identity, key, snapshot }: Pick<ChatCall, 'identity' | 'key' | 'snapshot'>,
  { conversation, status, input, whole }: StoredAnswer,
): ResponseHead {
  const previous = conversation?.previous;
  const ownLength = JSON.stringify([input, whole['output']]).length;
  return {
    account: key.account,
    id: responseId(identity),
    status,
    createdAt: identity.created,
    expires: identity.created + storeSettings(snapshot).days * daySeconds,
    ancestors: previous ? [previous.id, ...previous.ancestors].slice(0, ancestorsMax) : [],
    turn: (previous?.turn ?? 0) + 1,
    conversationLength: (previous?.conversationLength ?? 0) + ownLength,
  };
}
