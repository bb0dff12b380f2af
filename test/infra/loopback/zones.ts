/** Availability zones of the account. A name means a different zone in each account. */
import type { ServerResponse } from 'node:http';

/** In us-east-1 the first name is the zone that CloudFront's VPC origins can't reach. */
const shuffled: Readonly<Record<string, readonly string[]>> = {
  'us-east-1': ['use1-az3', 'use1-az6', 'use1-az1'],
};

/** Ids by name. */
export const zonesOf = (region: string): ReadonlyMap<string, string> =>
  new Map(
    (shuffled[region] ?? [1, 2, 3].map((number) => `${shortOf(region)}-az${number}`)).map((id, at) => [
      `${region}${'abc'[at]}`,
      id,
    ]),
  );

/** `apne1` of `ap-northeast-1`. */
const shortOf = (region: string): string => {
  const [place = '', side = '', number = ''] = region.split('-');
  return `${place}${side.replaceAll(/(north|south|east|west|central)/g, (word) => word[0] ?? '')}${number}`;
};

/** Answers like EC2, whose lists use other elements than those of other services. */
export function answerZones(response: ServerResponse, region: string): void {
  const items = [...zonesOf(region)].map(
    ([name, id]) =>
      `<item><optInStatus>opt-in-not-required</optInStatus><messageSet/><zoneId>${id}</zoneId><zoneName>${name}</zoneName><zoneState>available</zoneState><regionName>${region}</regionName></item>`,
  );
  response.writeHead(200, { 'content-type': 'text/xml;charset=UTF-8' });
  response.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<DescribeAvailabilityZonesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId><availabilityZoneInfo>${items.join('')}</availabilityZoneInfo></DescribeAvailabilityZonesResponse>`,
  );
}
