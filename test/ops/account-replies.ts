/**
 * AWS's answers about an account, in its documented shapes:
 * - lambda/latest/api/API_GetAccountSettings.html
 * - amazondynamodb/latest/APIReference/API_DescribeLimits.html
 * - systems-manager/latest/APIReference/API_GetServiceSetting.html
 * - bedrock/latest/APIReference/API_ListFoundationModels.html, API_GetFoundationModelAvailability.html
 * - AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
 * - STS/latest/APIReference/API_GetCallerIdentity.html
 * (all under https://docs.aws.amazon.com/).
 */
export interface AccountState {
  concurrency: { most: number; unreserved: number };
  tableUnits: number;
  fastParameters: boolean;
  /** By region. */
  models: Record<string, ModelState[]>;
  /** Undefined if the stack does not exist. */
  stack: { status: string; outputs: Record<string, string> } | undefined;
  /** Signed requests that arrived: service and region of the signature, method and path. */
  asked: string[];
  /** Overrides answers, by service: status and body. */
  broken: Record<string, [status: number, body: string, type?: string]>;
}

export interface ModelState {
  id: string;
  lifecycle?: 'ACTIVE' | 'LEGACY';
  streams?: boolean;
  agreement?: 'AVAILABLE' | 'PENDING' | 'NOT_AVAILABLE' | 'ERROR';
  authorization?: 'AUTHORIZED' | 'NOT_AUTHORIZED';
  entitlement?: 'AVAILABLE' | 'NOT_AVAILABLE';
  inRegion?: 'AVAILABLE' | 'NOT_AVAILABLE';
}

export const healthyAccount = (): AccountState => ({
  concurrency: { most: 1000, unreserved: 700 },
  tableUnits: 40_000,
  fastParameters: true,
  models: {},
  stack: { status: 'UPDATE_COMPLETE', outputs: {} },
  asked: [],
  broken: {},
});

export interface AskedAccount {
  method: string;
  path: string;
  target: string;
  authorization: string;
  body: string;
}

export type AccountAnswer = [status: number, body: string, type?: string];

/** Undefined if the request has another subject. */
export function accountAnswer(state: AccountState, asked: AskedAccount): AccountAnswer | undefined {
  const [, region = '', service = ''] =
    /Credential=[^/]+\/\d{8}\/([a-z0-9-]+)\/([a-z]+)\/aws4_request/.exec(asked.authorization) ?? [];
  const answer = answers[`${service} ${asked.target || asked.path.split('/').slice(0, 3).join('/')}`];
  const found = answer ?? answers[`${service} ${asked.path.split('/').slice(0, 2).join('/')}`];
  if (!found) return undefined;
  state.asked.push(`${service} ${region} ${asked.method} ${asked.path} ${asked.target}`.trim());
  return state.broken[service] ?? found(state, { ...asked, region });
}

/** The double names users after their access keys. */
const userOf = (authorization: string): string => /Credential=([^/]+)/.exec(authorization)?.[1] ?? '';

type Answer = (state: AccountState, asked: AskedAccount & { region: string }) => AccountAnswer;

const json = (body: object): AccountAnswer => [200, JSON.stringify(body)];

const answers: Record<string, Answer> = {
  'lambda /2016-08-19/account-settings': ({ concurrency: { most, unreserved } }) =>
    json({
      AccountLimit: {
        TotalCodeSize: 80_530_636_800,
        CodeSizeUnzipped: 262_144_000,
        CodeSizeZipped: 52_428_800,
        ConcurrentExecutions: most,
        UnreservedConcurrentExecutions: unreserved,
      },
      AccountUsage: { TotalCodeSize: 9_130_480, FunctionCount: 17 },
    }),
  'dynamodb DynamoDB_20120810.DescribeLimits': ({ tableUnits }) =>
    json({
      AccountMaxReadCapacityUnits: tableUnits * 2,
      AccountMaxWriteCapacityUnits: tableUnits * 2,
      TableMaxReadCapacityUnits: tableUnits,
      TableMaxWriteCapacityUnits: tableUnits,
    }),
  'ssm AmazonSSM.GetServiceSetting': ({ fastParameters }, { body, region }) => {
    const { SettingId } = JSON.parse(body) as { SettingId: string };
    return json({
      ServiceSetting: {
        ARN: `arn:aws:ssm:${region}:123456789012:servicesetting${SettingId}`,
        LastModifiedDate: 1_555_692_000.12,
        LastModifiedUser: 'System',
        SettingId,
        SettingValue: String(fastParameters),
        Status: fastParameters ? 'Customized' : 'Default',
      },
    });
  },
  'bedrock /foundation-models': ({ models }, { region }) =>
    json({
      modelSummaries: (models[region] ?? []).map(({ id, streams = true, lifecycle = 'ACTIVE' }) => ({
        customizationsSupported: [],
        inferenceTypesSupported: ['ON_DEMAND'],
        inputModalities: ['TEXT'],
        modelArn: `arn:aws:bedrock:${region}::foundation-model/${id}`,
        modelId: id,
        modelLifecycle: { status: lifecycle },
        modelName: id,
        outputModalities: ['TEXT'],
        providerName: id.split('.')[0],
        responseStreamingSupported: streams,
      })),
    }),
  'bedrock /foundation-model-availability': ({ models }, { region, path }) => {
    const modelId = decodeURIComponent(path.split('/')[2] ?? '');
    const model = models[region]?.find(({ id }) => id === modelId);
    if (!model)
      return [404, JSON.stringify({ message: 'The model was not found.' }), 'ResourceNotFoundException'];
    return json({
      modelId,
      agreementAvailability: { status: model.agreement ?? 'AVAILABLE' },
      authorizationStatus: model.authorization ?? 'AUTHORIZED',
      entitlementAvailability: model.entitlement ?? 'AVAILABLE',
      regionAvailability: model.inRegion ?? 'AVAILABLE',
    });
  },
  'sts /': (_state, { authorization }) => [
    200,
    `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/${userOf(authorization)}</Arn><UserId>AIDAEXAMPLE</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`,
  ],
  'cloudformation /': ({ stack }, { body, region }) => {
    const name = new URLSearchParams(body).get('StackName') ?? '';
    if (!stack)
      return [
        400,
        `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id ${name} does not exist</Message></Error></ErrorResponse>`,
      ];
    const outputs = Object.entries(stack.outputs)
      .map(
        ([key, value]) =>
          `<member><Description>x</Description><OutputKey>${key}</OutputKey><OutputValue>${escaped(value)}</OutputValue></member>`,
      )
      .join('\n');
    return [
      200,
      `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>
<StackName>${name}</StackName><StackId>arn:aws:cloudformation:${region}:123456789012:stack/${name}/466df9e0-0dff-08e3-8e2f-5088487c4896</StackId>
<CreationTime>2010-07-27T22:28:28Z</CreationTime><StackStatus>${stack.status}</StackStatus><DisableRollback>false</DisableRollback>
<Outputs>${outputs}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
    ];
  },
};

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
