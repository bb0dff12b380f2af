/**
 * Stores the answer of a call before its end is sent, also of one that fails after its client has seen it begin. Must never
 * fail the answer, nor hold it up for long, nor leave readable what the answer says is not stored.
 */
import type { StorageAsked } from '../../endpoints/endpoint.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { AnswerRecorder } from '../answer/answer.ts';
import type { ChatCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { Backoff, within } from '../retry.ts';
import {
  ancestorsMax,
  ResponseTooLarge,
  type ResponseHead,
  type ResponseStatus,
  type ResponseStore,
} from '../ports/stored.ts';
import type { Conversation } from './conversation.ts';

const daySeconds = 24 * 60 * 60;

/** How long an answer's end waits for the store, and how long it is tried to take back what is not stored. */
const times = { waitMs: 2_000, takeBackMs: 5_000 };
/** For a call whose own time is up. */
const hurriedTimes = { waitMs: 1_000, takeBackMs: 1_500 };

export interface KeptAnswerInput {
  call: Pick<ChatCall, 'identity' | 'key' | 'snapshot' | 'signal'>;
  storage: StorageAsked;
  conversation: Conversation | undefined;
  /** The state of the turn, sealed; undefined: it has none. */
  seal: () => string | undefined;
}

interface RecorderPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  responses: Pick<ResponseStore, 'put' | 'withdraw'>;
}

export class KeptAnswer implements AnswerRecorder {
  /** Until it is known, what is intended. */
  stored = true;
  readonly #ports: RecorderPorts;
  readonly #parts: KeptAnswerInput;
  #tookBack: Promise<void> | undefined;

  constructor(ports: RecorderPorts, parts: KeptAnswerInput) {
    this.#ports = ports;
    this.#parts = parts;
  }

  get headers(): Record<string, string> {
    return this.stored ? {} : { 'x-relay-store': 'failed' };
  }

  addTexts(): void {}

  async keep(whole: JsonRecord): Promise<void> {
    const { clock } = this.#ports;
    const { waitMs, takeBackMs } = this.#parts.call.signal.aborted ? hurriedTimes : times;
    const write = this.#write(whole, waitMs);
    const why = await within(clock, waitMs, { work: write, late: 'write_late' as const });
    this.stored = why === undefined;
    if (why === undefined) return;
    this.#logEvent('response_not_stored', { why });
    // A try without a reply may have been applied, or may be still: from here on it is refused.
    if (why !== 'too_large') this.#tookBack = this.#takeBack(write, takeBackMs);
  }

  async finish(): Promise<void> {}

  /** The answer said that it is not stored: nobody should find it later. */
  async awaitWrites(): Promise<void> {
    await this.#tookBack;
  }

  /** Stores the answer, or returns why it could not. Never rejects. */
  async #write(whole: JsonRecord, waitMs: number): Promise<'too_large' | 'write_failed' | undefined> {
    const { call, conversation, storage, seal } = this.#parts;
    const { responses, log } = this.#ports;
    const status = whole['status'] as ResponseStatus;
    try {
      const input = storage.input(call.identity.requestId);
      const head = headOf(call, { conversation, status, input, whole });
      // The state of a turn that was cut off may be a part of it.
      const body = { input, response: whole, seal: status === 'failed' ? undefined : seal() };
      await new Backoff(this.#ports, waitMs).until(() => responses.put({ head, body }));
      return undefined;
    } catch (error) {
      if (error instanceof ResponseTooLarge) return 'too_large';
      log.fault(call.identity.requestId, error);
      return 'write_failed';
    }
  }

  /** An answer that cannot be deleted in time may be found by its account until it expires. Never rejects. */
  async #takeBack(write: Promise<unknown>, budgetMs: number): Promise<void> {
    const { clock, log, responses } = this.#ports;
    const { identity, key } = this.#parts.call;
    let isWithdrawn = false;
    const work = new Backoff(this.#ports, budgetMs)
      .until(() => responses.withdraw(key.account, responseIdOf(identity)))
      .then(() => {
        isWithdrawn = true;
        // A write that is refused removes the parts that it wrote.
        return write;
      })
      .catch((error: unknown) => log.fault(identity.requestId, error));
    await within(clock, budgetMs, { work, late: undefined });
    if (!isWithdrawn) this.#logEvent('response_not_taken_back', {});
  }

  #logEvent(name: string, fields: object): void {
    const { identity, key } = this.#parts.call;
    this.#ports.log.event(name, { request_id: identity.requestId, account: key.account, ...fields });
  }
}

const responseIdOf = ({ requestId }: ChatCall['identity']): string => `resp-${requestId}`;

export function headOf(
  { identity, key, snapshot }: Pick<ChatCall, 'identity' | 'key' | 'snapshot'>,
  answer: {
    conversation: Conversation | undefined;
    status: ResponseStatus;
    input: readonly JsonRecord[];
    whole: JsonRecord;
  },
): ResponseHead {
  const previous = answer.conversation?.previous;
  const ownLength = JSON.stringify([answer.input, answer.whole['output']]).length;
  return {
    account: key.account,
    id: responseIdOf(identity),
    status: answer.status,
    createdAt: identity.created,
    expires: identity.created + snapshot.settings.store.days * daySeconds,
    ancestors: previous ? [previous.id, ...previous.ancestors].slice(0, ancestorsMax) : [],
    turn: (previous?.turn ?? 0) + 1,
    conversationLength: (previous?.conversationLength ?? 0) + ownLength,
  };
}
