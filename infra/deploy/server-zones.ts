/**
 * Stops a deployment of servers into an availability zone that CloudFront's VPC origins can't reach: the stack would roll back after a quarter
 * of an hour. Zone names mean other zones in each account, so it asks EC2 for their ids.
 */
import { createSigner } from '../../shared/adapters/aws/aws-signature.ts';
import { resolveEndpoint } from '../../shared/adapters/aws/aws-calls.ts';
import type { AwsCaller } from '../../shared/adapters/aws/client-settings.ts';
import type { StageOptions } from '../stack/options/option-table.ts';
import { zonesWithoutVpcOrigins } from '../stack/options/streaming-regions.ts';
import type { Deployed } from './deployed-options.ts';

/** @returns why the zones can't be used, and what to write into the file of the stage */
export async function findZoneProblem(
  { compute, service: { vpc, zones } = {} }: StageOptions,
  deployed: Deployed,
  open: () => Promise<AwsCaller>,
): Promise<string | undefined> {
  const excluded = zonesWithoutVpcOrigins[deployed.region];
  // Options with ids were checked when they were read.
  if (compute !== 'ecs' || excluded === undefined || zones !== undefined) return undefined;
  const named = vpc?.zones.filter((zone) => !zone.includes('-az')) ?? [];
  if (vpc ? named.length === 0 : hasServers(deployed)) return undefined;
  const ids = await readZoneIds(await open());
  const usable = [...ids.values()].filter((id) => id !== excluded).toSorted();
  if (vpc === undefined) {
    if (usable.length === ids.size) return undefined;
    const example = JSON.stringify({ service: { zones: usable.slice(0, 2) } });
    return `CloudFormation may choose the zone ${excluded}, which CloudFront's VPC origins can't reach. Name two other zones, such as ${example}`;
  }
  const wrong = named.find((name) => ids.get(name) === excluded || !ids.has(name));
  if (wrong === undefined) return undefined;
  return ids.has(wrong)
    ? `service.vpc.zones: in this account ${wrong} is ${excluded}, which CloudFront's VPC origins can't reach. Name another zone and its subnet`
    : `service.vpc.zones: this account has no zone ${wrong}; it has ${[...ids.keys()].join(', ')}`;
}

/** The servers of a deployed stack are where CloudFront reached them. Another zone would replace their subnets. */
const hasServers = (deployed: Deployed): boolean =>
  deployed.state === 'published' && deployed.options['compute'] === 'ecs';

const timeoutMs = 10_000;

/** One signed request: EC2's client in the SDK has 18 MB. @returns ids by name */
async function readZoneIds({ aws, environment }: AwsCaller): Promise<Map<string, string>> {
  const { region, credentials } = await aws();
  const url = resolveEndpoint({ name: 'ec2', variable: 'AWS_ENDPOINT_URL_EC2' }, region, environment);
  const body =
    'Action=DescribeAvailabilityZones&Version=2016-11-15&Filter.1.Name=zone-type&Filter.1.Value.1=availability-zone';
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const request = { host: url.host, path: '/', headers, body, credentials, atMs: Date.now() };
  const signed = createSigner('ec2', region)(request);
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, ...signed },
    body,
    signal: AbortSignal.timeout(timeoutMs),
  }).then(
    async (response) => ({ ok: response.ok, text: await response.text() }),
    (error: unknown) => ({ ok: false, text: String(error) }),
  );
  const ids = answer.text.split('<item>').flatMap((item): [string, string][] => {
    const [name, id] = ['zoneName', 'zoneId'].map((field) => readElement(item, field));
    return name === undefined || id === undefined ? [] : [[name, id]];
  });
  if (answer.ok && ids.length > 0) return new Map(ids);
  const reason = readElement(answer.text, 'Message') ?? answer.text.slice(0, 200);
  throw new Error(
    `cannot read the availability zones of ${region} (${reason}). Allow ec2:DescribeAvailabilityZones, or name zones by id in service.zones or service.vpc.zones`,
  );
}

const readElement = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
