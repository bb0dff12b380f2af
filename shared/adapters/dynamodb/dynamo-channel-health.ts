/**
 * Health of candidates in one item of the table `runtime`, which every environment reads with its
 * configuration. Each candidate has up to three numbers. They are top-level attributes, because DynamoDB does
 * not create parent maps: `cool:<id>` and `probe:<id>` (epoch milliseconds) and `failures:<id>`. States of a
 * candidate:
 *
 *     healthy --failures--> cooldown until `cool` --> one probe until `probe` --> healthy, or the next cooldown
 */
import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import type { CandidateHealth, ChannelHealth } from '../../relay/ports/stores/channel-health.ts';
import type { Clock } from '../../relay/ports/clock.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import { conditionalCall } from './dynamo-client.ts';

export const cooldownsId = 'cooldowns';

/**
 * This environment's own writes override the last read for this long: reads are at most 8 s old, so by then a
 * read includes them.
 */
const ownKnowledgeMs = 9_000;

const hadNoCooldown = 'attribute_not_exists(#cool)';
const hasShorterCooldown = '#cool < :until';
const cooldownIsOver = '#cool <= :now';
const hasNoProbe = '(attribute_not_exists(#probe) OR #probe <= :now)';

/** The expressions of an update and the values of their placeholders. */
interface HealthUpdate {
  update: string;
  condition?: string;
  values?: Record<`:${string}`, number>;
}

export interface ChannelHealthParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  /** The item as last read with the configuration. */
  cooldowns: () => Record<string, unknown> | undefined;
}

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
    await this.#update(id, {
      update: 'SET #cool = :until REMOVE #failures, #probe',
      condition: `${hadNoCooldown} OR ${hasShorterCooldown}`,
      values: { ':until': untilMs },
    });
  }

  async countFailure(id: string): Promise<number> {
    const updated = await this.#update(id, { update: 'ADD #failures :one', values: { ':one': 1 } });
    const failures = Number(updated?.[`failures:${id}`] ?? 1);
    this.#remember(id, { ...this.of(id), failures });
    return failures;
  }

  async recover(id: string, nowMs: number): Promise<void> {
    if ((this.of(id)?.coolUntilMs ?? 0) <= nowMs) this.#remember(id, undefined);
    await this.#update(id, {
      update: 'REMOVE #cool, #failures, #probe',
      condition: `${hadNoCooldown} OR ${cooldownIsOver}`,
      values: { ':now': nowMs },
    });
  }

  async claimProbe(id: string, nowMs: number, untilMs: number): Promise<boolean> {
    const claimed = await this.#update(id, {
      update: 'SET #probe = :until',
      condition: `${cooldownIsOver} AND ${hasNoProbe}`,
      values: { ':now': nowMs, ':until': untilMs },
    });
    if (claimed) this.#remember(id, { failures: 0, ...this.of(id), probeUntilMs: untilMs });
    return claimed !== undefined;
  }

  #remember(id: string, health: CandidateHealth | undefined): void {
    this.#own.set(id, { health, atMs: this.#parts.clock.now() });
  }

  /** The attributes after the update. Undefined: the condition did not hold. */
  async #update(
    id: string,
    { update, condition, values }: HealthUpdate,
  ): Promise<Record<string, unknown> | undefined> {
    const text = `${update} ${condition ?? ''}`;
    const names = Object.entries({
      '#cool': `cool:${id}`,
      '#failures': `failures:${id}`,
      '#probe': `probe:${id}`,
    });
    const command = new UpdateItemCommand({
      TableName: physicalTableName(this.#parts.stack, 'runtime'),
      Key: marshall({ id: cooldownsId }),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: Object.fromEntries(names.filter(([name]) => text.includes(name))),
      ExpressionAttributeValues: values && marshall(values),
      ReturnValues: 'UPDATED_NEW',
    });
    const reply = await conditionalCall(() => this.#parts.client.send(command));
    return reply.done ? unmarshall(reply.reply.Attributes ?? {}) : undefined;
  }
}

function healthIn(item: Record<string, unknown> | undefined, id: string): CandidateHealth | undefined {
  const number = (name: string): number | undefined => {
    const value = item?.[`${name}:${id}`];
    return typeof value === 'number' ? value : undefined;
  };
  const health = {
    coolUntilMs: number('cool'),
    probeUntilMs: number('probe'),
    failures: number('failures') ?? 0,
  };
  return health.coolUntilMs === undefined && health.failures === 0 ? undefined : health;
}
