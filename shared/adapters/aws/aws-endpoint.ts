/** Where AWS's services are, as the SDK finds them: a variable of the environment, else the region's own address. */

export interface AwsService {
  /** As in signatures and in host names. */
  name: string;
  /** `x-amz-target` before its dot. */
  target: string;
  contentType: string;
  /** The variable that names another address for this service alone. */
  variable: string;
}

export const dynamodb: AwsService = {
  name: 'dynamodb',
  target: 'DynamoDB_20120810',
  contentType: 'application/x-amz-json-1.0',
  variable: 'AWS_ENDPOINT_URL_DYNAMODB',
};

export const parameterStore: AwsService = {
  name: 'ssm',
  target: 'AmazonSSM',
  contentType: 'application/x-amz-json-1.1',
  variable: 'AWS_ENDPOINT_URL_SSM',
};

export const secretsManager: AwsService = {
  name: 'secretsmanager',
  target: 'secretsmanager',
  contentType: 'application/x-amz-json-1.1',
  variable: 'AWS_ENDPOINT_URL_SECRETS_MANAGER',
};

/** Regions of other partitions, and what their host names end with. */
const partitions: [RegExp, string][] = [
  [/^cn-/, 'amazonaws.com.cn'],
  [/^eusc-de-/, 'amazonaws.eu'],
  [/^us-iso-/, 'c2s.ic.gov'],
  [/^us-isob-/, 'sc2s.sgov.gov'],
  [/^eu-isoe-/, 'cloud.adc-e.uk'],
  [/^us-isof-/, 'csp.hci.ic.gov'],
];

/** Throws when FIPS or dual-stack is asked for, so that a request for FIPS never silently gets a plain endpoint. */
export function endpointOf(
  { name, variable }: Pick<AwsService, 'name' | 'variable'>,
  region: string,
  variables = process.env,
): URL {
  if (variables['AWS_USE_FIPS_ENDPOINT'] === 'true' || variables['AWS_USE_DUALSTACK_ENDPOINT'] === 'true')
    throw new Error('FIPS and dual-stack endpoints are not offered.');
  const given = variables[variable] || variables['AWS_ENDPOINT_URL'];
  const suffix = partitions.find(([pattern]) => pattern.test(region))?.[1] ?? 'amazonaws.com';
  return new URL(given || `https://${name}.${region}.${suffix}`);
}
