import {
  ConditionalCheckFailedException,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { CandidateHealth, ChannelHealth } from '../relay/channel-health.ts';
import type { Clock } from '../relay/ports.ts';
import { storeCall } from './dynamo.ts';
import { numberAttribute, textAttribute, type Attributes } from './quota-attributes.ts';
import { physicalTableName } from './table-schema.ts';

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
export function dynamoChannelHealth({ client, clock, stack, cooldowns }: ChannelHealthParts): ChannelHealth {
  const own = new Map<string, { health: CandidateHealth | undefined; atMs: number }>();
  const TableName = physicalTableName(stack, 'runtime');

  const of = (id: string): CandidateHealth | undefined => {
    const changed = own.get(id);
    if (changed && clock.now() - changed.atMs < ownKnowledgeMs) return changed.health;
    own.delete(id);
    return healthIn(cooldowns(), id);
  };
  const remember = (id: string, health: CandidateHealth | undefined): void => {
    own.set(id, { health, atMs: clock.now() });
  };
  /** Undefined: the condition did not hold. */
  const update = async (
    id: string,
    expression: Pick<UpdateItemCommandInput, 'UpdateExpression' | 'ConditionExpression'>,
    values: Record<string, number> = {},
  ): Promise<Attributes | undefined> => {
    const text = `${expression.UpdateExpression} ${expression.ConditionExpression ?? ''}`;
    const names = { '#cool': `cool:${id}`, '#failures': `failures:${id}`, '#probe': `probe:${id}` };
    const command = new UpdateItemCommand({
      TableName,
      Key: { id: textAttribute(cooldownsId) },
      ...expression,
      ExpressionAttributeNames: Object.fromEntries(
        Object.entries(names).filter(([name]) => text.includes(name)),
      ),
      ...(Object.keys(values).length > 0 && {
        ExpressionAttributeValues: Object.fromEntries(
          Object.entries(values).map(([name, value]) => [name, numberAttribute(value)]),
        ),
      }),
      ReturnValues: 'UPDATED_NEW',
    });
    try {
      return (await storeCall(() => client.send(command))).Attributes ?? {};
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw error;
    }
  };

  return {
    of,
    async cool(id, untilMs) {
      remember(id, { coolUntilMs: Math.max(untilMs, of(id)?.coolUntilMs ?? 0), failures: 0 });
      const expression = {
        UpdateExpression: 'SET #cool = :until REMOVE #failures, #probe',
        ConditionExpression: 'attribute_not_exists(#cool) OR #cool < :until',
      };
      await update(id, expression, { ':until': untilMs });
    },
    async countFailure(id) {
      const seen = await update(id, { UpdateExpression: 'ADD #failures :one' }, { ':one': 1 });
      const failures = Number(seen?.[`failures:${id}`]?.N ?? 1);
      remember(id, { ...of(id), failures });
      return failures;
    },
    async recover(id) {
      remember(id, undefined);
      await update(id, { UpdateExpression: 'REMOVE #cool, #failures, #probe' });
    },
    async claimProbe(id, nowMs, untilMs) {
      const expression = {
        UpdateExpression: 'SET #probe = :until',
        ConditionExpression: '#cool <= :now AND (attribute_not_exists(#probe) OR #probe <= :now)',
      };
      const claimed = await update(id, expression, { ':now': nowMs, ':until': untilMs });
      if (claimed) remember(id, { failures: 0, ...of(id), probeUntilMs: untilMs });
      return claimed !== undefined;
    },
  };
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
