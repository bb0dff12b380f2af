import {
  ConditionalCheckFailedException,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { CandidateHealth, ChannelHealth } from '../../relay/ports/channel-health.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import { storeCall } from './dynamo-client.ts';
import { numberAttribute, textAttribute, type Attributes } from './quotas/quota-attributes.ts';
import { physicalTableName } from '../../tables/table-names.ts';

/** The item of the table `runtime` in which all environments share what they know against candidates. */
export const cooldownsId = 'cooldowns';

/** What was changed here counts until a read must have shown it: reads are at most 8 s old. */
const ownKnowledgeMs = 9_000;

export interface ChannelHealthParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  /** The item as last read with the configuration. */
  cooldowns: () => Attributes | undefined;
}

/**
 * Per candidate up to three numbers at the item's top level, where DynamoDB needs no parents: `cool:<id>` and
 * `probe:<id>` (epoch milliseconds) and `failures:<id>`.
 */
export class DynamoChannelHealth implements ChannelHealth {
  readonly #parts: ChannelHealthParts;
  readonly #own = new Map<string, { health: CandidateHealth | undefined; atMs: number }>();

  constructor(parts: ChannelHealthParts) {
    this.#parts = parts;
  }

  of(id: string): CandidateHealth | undefined {
    const changed = this.#own.get(id);
    if (changed && this.#parts.clock.now() - changed.atMs < ownKnowledgeMs) return changed.health;
    this.#own.delete(id);
    return healthIn(this.#parts.cooldowns(), id);
  }

  async cool(id: string, untilMs: number): Promise<void> {
    this.#remember(id, { coolUntilMs: Math.max(untilMs, this.of(id)?.coolUntilMs ?? 0), failures: 0 });
    const expression = {
      UpdateExpression: 'SET #cool = :until REMOVE #failures, #probe',
      ConditionExpression: 'attribute_not_exists(#cool) OR #cool < :until',
    };
    await this.#update(id, expression, { ':until': untilMs });
  }

  async countFailure(id: string): Promise<number> {
    const seen = await this.#update(id, { UpdateExpression: 'ADD #failures :one' }, { ':one': 1 });
    const failures = Number(seen?.[`failures:${id}`]?.N ?? 1);
    this.#remember(id, { ...this.of(id), failures });
    return failures;
  }

  async recover(id: string, nowMs: number): Promise<void> {
    if ((this.of(id)?.coolUntilMs ?? 0) <= nowMs) this.#remember(id, undefined);
    const expression = {
      UpdateExpression: 'REMOVE #cool, #failures, #probe',
      ConditionExpression: 'attribute_not_exists(#cool) OR #cool <= :now',
    };
    await this.#update(id, expression, { ':now': nowMs });
  }

  async claimProbe(id: string, nowMs: number, untilMs: number): Promise<boolean> {
    const expression = {
      UpdateExpression: 'SET #probe = :until',
      ConditionExpression: '#cool <= :now AND (attribute_not_exists(#probe) OR #probe <= :now)',
    };
    const claimed = await this.#update(id, expression, { ':now': nowMs, ':until': untilMs });
    if (claimed) this.#remember(id, { failures: 0, ...this.of(id), probeUntilMs: untilMs });
    return claimed !== undefined;
  }

  #remember(id: string, health: CandidateHealth | undefined): void {
    this.#own.set(id, { health, atMs: this.#parts.clock.now() });
  }

  /** What the update returned; undefined: its condition did not hold. */
  async #update(
    id: string,
    expression: Pick<UpdateItemCommandInput, 'UpdateExpression' | 'ConditionExpression'>,
    values?: Record<string, number>,
  ): Promise<Attributes | undefined> {
    const text = `${expression.UpdateExpression} ${expression.ConditionExpression ?? ''}`;
    const names = Object.entries({
      '#cool': `cool:${id}`,
      '#failures': `failures:${id}`,
      '#probe': `probe:${id}`,
    });
    const numbers = Object.entries(values ?? {}).map(([name, value]) => [name, numberAttribute(value)]);
    const command = new UpdateItemCommand({
      TableName: physicalTableName(this.#parts.stack, 'runtime'),
      Key: { id: textAttribute(cooldownsId) },
      ...expression,
      ExpressionAttributeNames: Object.fromEntries(names.filter(([name]) => text.includes(name))),
      ...(values && { ExpressionAttributeValues: Object.fromEntries(numbers) }),
      ReturnValues: 'UPDATED_NEW',
    });
    try {
      return (await storeCall(() => this.#parts.client.send(command))).Attributes ?? {};
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw error;
    }
  }
}

function healthIn(item: Attributes | undefined, id: string): CandidateHealth | undefined {
  const number = (name: string): number | undefined => {
    const text = item?.[`${name}:${id}`]?.N;
    return text === undefined ? undefined : Number(text);
  };
  const health = {
    coolUntilMs: number('cool'),
    probeUntilMs: number('probe'),
    failures: number('failures') ?? 0,
  };
  return health.coolUntilMs === undefined && health.failures === 0 ? undefined : health;
}
