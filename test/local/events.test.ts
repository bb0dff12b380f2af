import { PutItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readOptions } from '../../infra/local/host/local-options.ts';
import { startStack, type RunningStack } from '../../infra/local/start-stack.ts';
import { emulatorClient } from '../support/emulator.ts';
import { startControl, type Control } from './control.ts';
import { functionResource, writeTemplate } from './fixture-template.ts';

interface StreamEvent {
  Records: { eventName: string; dynamodb: { SequenceNumber: string; NewImage: { id: { S: string } } } }[];
}

const mapping = {
  Type: 'AWS::Lambda::EventSourceMapping',
  Properties: {
    EventSourceArn: { 'Fn::GetAtt': ['Things', 'StreamArn'] },
    FunctionName: { Ref: 'Consumer' },
    StartingPosition: 'TRIM_HORIZON',
    BatchSize: 10,
    MaximumRetryAttempts: 1,
    BisectBatchOnFunctionError: true,
    FunctionResponseTypes: ['ReportBatchItemFailures'],
    FilterCriteria: { Filters: [{ Pattern: '{"eventName":["INSERT"]}' }] },
    DestinationConfig: { OnFailure: { Destination: { 'Fn::GetAtt': ['Failures', 'Arn'] } } },
  },
};
const rule = {
  Type: 'AWS::Events::Rule',
  Properties: {
    ScheduleExpression: 'rate(5 minutes)',
    State: 'ENABLED',
    Targets: [{ Id: 'Target0', Arn: { 'Fn::GetAtt': ['Consumer', 'Arn'] } }],
  },
};
const schedule = {
  Type: 'AWS::Events::Rule',
  Properties: {
    ScheduleExpression: 'rate(1 day)',
    Targets: [{ Arn: { 'Fn::GetAtt': ['Consumer', 'Arn'] }, Input: '{"task":"sweep"}' }],
  },
};

let control: Control;
let stack: RunningStack;
let client: DynamoDBClient;
let removeTemplate: () => void;
let log: string[];

const start = async (events: Record<string, unknown>): Promise<void> => {
  const template = writeTemplate({
    Consumer: functionResource('consumer', { CONTROL_URL: control.url }),
    ...events,
  });
  removeTemplate = () => template.remove();
  log = [];
  stack = await startStack(
    {
      ...readOptions({
        PATH: process.env['PATH'],
        NODE_OPTIONS: '--no-deprecation',
        PORT: '0',
        DYNAMODB_PORT: '0',
        RELAY_DATA: 'memory',
        RELAY_SEED: 'none',
        RELAY_TEMPLATE_FOLDER: template.folder,
      }),
      environmentsMax: 2,
    },
    (line) => log.push(line),
  );
  client = emulatorClient(stack.dynamodbEndpoint);
};

beforeAll(async () => {
  control = await startControl();
});
afterEach(async () => {
  client.destroy();
  await stack.close();
  removeTemplate();
});
afterAll(() => control.close());

const put = (id: string): Promise<unknown> =>
  client.send(
    new PutItemCommand({
      TableName: 'relay-things',
      Item: { id: { S: id }, written: { S: String(Math.random()) } },
    }),
  );
const nextBatch = async () => {
  const call = await control.next('event');
  const { Records } = call.body as StreamEvent;
  return {
    ids: Records.map(({ dynamodb }) => dynamodb.NewImage.id.S),
    sequenceNumberOf: (index: number) => Records[index]?.dynamodb.SequenceNumber,
    answer: (value?: unknown) => call.answer(value),
  };
};

describe('the stream of a table', () => {
  beforeEach(() => start({ Failures: { Type: 'AWS::S3::Bucket' }, Mapping: mapping }));

  it('reaches its function, without filtered records', async () => {
    await put('first');
    const batch = await nextBatch();
    expect(batch.ids).toEqual(['first']);
    await put('first');
    await put('second');
    batch.answer({ batchItemFailures: [] });
    const next = await nextBatch();
    expect(next.ids).toEqual(['second']);
    next.answer();
  });

  it('continues at the record that the function reported, and abandons only a poisoned one', async () => {
    await put('held');
    const held = await nextBatch();
    for (const id of ['good', 'poison', 'late']) await put(id);
    held.answer();
    const all = await nextBatch();
    expect(all.ids).toEqual(['good', 'poison', 'late']);
    all.answer({ batchItemFailures: [{ itemIdentifier: all.sequenceNumberOf(1) }] });
    const rest = await nextBatch();
    expect(rest.ids).toEqual(['poison', 'late']);
    rest.answer('fail');
    for (const _ of ['first try', 'retry']) {
      const alone = await nextBatch();
      expect(alone.ids).toEqual(['poison']);
      alone.answer('fail');
    }
    const late = await nextBatch();
    expect(late.ids).toEqual(['late']);
    late.answer();
    expect(log.join('\n')).toContain('[consumer] gave up 1 stream records (3 to 3)');
  });
});

describe('schedules', () => {
  it('run on request, each with its event', async () => {
    await start({ Rule: rule, Schedule: schedule });
    const ran = stack.runSchedules();
    const events: unknown[] = [];
    for (const _ of [rule, schedule]) {
      const call = await control.next('event');
      events.push(call.body);
      call.answer();
    }
    await ran;
    expect(events).toEqual(
      expect.arrayContaining([
        { task: 'sweep' },
        expect.objectContaining({ source: 'aws.events', 'detail-type': 'Scheduled Event' }),
      ]),
    );
  });
});

describe('a function of the template', () => {
  it('gets the caller’s environment, overridden by the template’s and then by the local stack’s', async () => {
    await start({});
    const environment = (await (await fetch(`${stack.origin}/environment`)).json()) as Record<string, string>;
    expect(environment).toMatchObject({
      FROM_TEMPLATE: 'template',
      // Options of both; the template's come last.
      NODE_OPTIONS: '--no-deprecation --max-old-space-size=200',
      RELAY_LOCAL: '1',
      AWS_ENDPOINT_URL_DYNAMODB: expect.stringMatching(/^http:\/\/127\.\d+\.\d+\.\d+:\d+$/) as string,
      AWS_ACCESS_KEY_ID: 'local',
      AWS_REGION: 'us-east-1',
    });
    const echoed = (await (await fetch(`${stack.origin}/echo`)).json()) as {
      headers: Record<string, string>;
    };
    expect(environment['SECRET']).toMatch(/^[0-9a-f]{48}$/);
    expect(echoed.headers['x-relay-origin']).toBe(environment['SECRET']);
  });
});

describe('a mapping of another kind', () => {
  it.each([{ StartingPosition: 'LATEST' }, { FunctionResponseTypes: [] }])(
    '%j aborts the start',
    async (other) => {
      const properties = { ...mapping.Properties, ...other };
      const events = {
        Failures: { Type: 'AWS::S3::Bucket' },
        Mapping: { ...mapping, Properties: properties },
      };
      await expect(start(events)).rejects.toThrow('Mapping: only mappings that begin at the oldest record');
    },
  );
});
