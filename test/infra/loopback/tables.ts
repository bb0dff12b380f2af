/** The tables of an account in a DynamoDB emulator, so that what is deployed can be used. */
import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  type CreateTableCommandInput,
} from '@aws-sdk/client-dynamodb';
import type { RecoverableTables } from './recoverable-tables.ts';
import type { Resource } from './template.ts';

export class EmulatedTables {
  readonly endpoint: string;
  /** Answers instead of the emulator. Undefined if nothing does. */
  recovery: RecoverableTables | undefined;
  readonly #client: DynamoDBClient;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    this.#client = new DynamoDBClient({ endpoint, region: 'us-east-1', credentials });
  }

  async names(): Promise<string[]> {
    const { TableNames = [] } = await this.#client.send(new ListTablesCommand());
    return TableNames;
  }

  /** Creates and deletes tables to match those of the account. */
  async follow(standing: readonly Resource[]): Promise<void> {
    const wanted = standing.filter(({ type }) => type.startsWith('AWS::DynamoDB::'));
    const names = await this.names();
    for (const { properties, physicalId } of wanted)
      if (!names.includes(physicalId))
        await this.#client.send(new CreateTableCommand(tableInput(properties)));
    for (const TableName of names)
      if (!wanted.some(({ physicalId }) => physicalId === TableName))
        await this.#client.send(new DeleteTableCommand({ TableName }));
  }

  close(): void {
    this.#client.destroy();
  }
}

function tableInput(properties: Record<string, unknown>): CreateTableCommandInput {
  const { TableName, KeySchema, AttributeDefinitions, GlobalSecondaryIndexes, StreamSpecification } =
    properties as unknown as CreateTableCommandInput;
  return {
    TableName,
    KeySchema,
    AttributeDefinitions,
    BillingMode: 'PAY_PER_REQUEST',
    ...(GlobalSecondaryIndexes && { GlobalSecondaryIndexes }),
    ...(StreamSpecification && { StreamSpecification: { ...StreamSpecification, StreamEnabled: true } }),
  };
}
