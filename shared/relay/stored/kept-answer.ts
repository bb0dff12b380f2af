/** Stores the answer of a call before its end is sent. Must never fail or hold up the answer for long. */
import type { StorageAsked } from '../../endpoints/endpoint.ts';
import type { JsonRecord } from '../../wire/json-record.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { Clock } from '../ports/clock.ts';
import type { ResponseStore } from '../ports/stored/response-store.ts';
import { ancestorsMax, type ResponseHead, type ResponseStatus } from '../ports/stored/stored-response.ts';
import type { Log } from '../ports/telemetry.ts';
import type { AnswerKeeper } from './answer-keeper.ts';
import type { Conversation } from './stored-conversation.ts';
import { storeSettings } from './may-store.ts';

const daySeconds = 24 * 60 * 60;

export interface KeptAnswerParts {
  call: Pick<ChatCall, 'identity' | 'key' | 'snapshot'>;
  storage: StorageAsked;
  conversation: Conversation;
  /** The state of the turn, sealed; undefined: it has none. */
  seal: () => string | undefined;
}

export class KeptAnswer implements AnswerKeeper {
  /** Until it is known, what is intended. */
  stored = true;
  readonly #ports: { clock: Clock; log: Log; responses: ResponseStore };
  readonly #parts: KeptAnswerParts;

  constructor(ports: { clock: Clock; log: Log; responses: ResponseStore }, parts: KeptAnswerParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  wrote(): void {}

  async keep(whole: JsonRecord): Promise<void> {
    const { call, conversation, storage, seal } = this.#parts;
    const input = storage.input(call.identity.requestId);
    const head = headOf(call, { conversation, status: whole['status'] as ResponseStatus, input, whole });
    try {
      await this.#ports.responses.put({ head, body: { input, response: whole, seal: seal() } });
    } catch (error) {
      this.stored = false;
      this.#ports.log.fault(call.identity.requestId, error);
    }
  }

  async ended(): Promise<void> {}
}

interface StoredAnswer {
  conversation: Conversation;
  status: ResponseStatus;
  input: readonly JsonRecord[];
  whole: JsonRecord;
}

export function headOf(
  { identity, key, snapshot }: KeptAnswerParts['call'],
  { conversation: { previous }, status, input, whole }: StoredAnswer,
): ResponseHead {
  const ownLength = JSON.stringify([input, whole['output']]).length;
  return {
    account: key.account,
    id: `resp-${identity.requestId}`,
    status,
    createdAt: identity.created,
    expires: identity.created + storeSettings(snapshot).days * daySeconds,
    ancestors: previous ? [previous.id, ...previous.ancestors].slice(0, ancestorsMax) : [],
    turn: (previous?.turn ?? 0) + 1,
    conversationLength: (previous?.conversationLength ?? 0) + ownLength,
  };
}
