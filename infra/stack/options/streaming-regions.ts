/**
 * Regions in which a relay cannot run. Source: AWS Lambda Developer Guide, "Creating and managing Lambda function URLs",
 * the note on regions without Function URLs, read in November 2026. Lambda streams answers only through Function URLs.
 */
const withoutFunctionUrls: ReadonlySet<string> = new Set([
  'ap-east-2',
  'ap-south-2',
  'ap-southeast-4',
  'ap-southeast-5',
  'ap-southeast-6',
  'ap-southeast-7',
  'ca-west-1',
  'eu-central-2',
  'eu-south-2',
  'il-central-1',
  'me-central-1',
]);

/**
 * Regions where CloudFront can't deliver standard logs to a bucket: the opt-in regions that are not in the list above.
 * Source: Amazon CloudFront Developer Guide, "Configure standard logging (legacy)", read in November 2026.
 */
export const withoutEdgeLogs: ReadonlySet<string> = new Set([
  'af-south-1',
  'ap-east-1',
  'ap-southeast-3',
  'eu-south-1',
  'me-south-1',
  'mx-central-1',
]);

/**
 * By region, the availability zone in which CloudFront's VPC origins reach no balancer. By id, because each account has other names for
 * its zones. Source: Amazon CloudFront Developer Guide, "Restrict access with VPC origins", supported Regions, as public projects quote
 * it: use1-az3, usw1-az2, apne1-az3, cac1-az3 in July 2026, apne2-az1 in June 2025.
 */
export const zonesWithoutVpcOrigins: Readonly<Record<string, string>> = {
  'ap-northeast-1': 'apne1-az3',
  'ap-northeast-2': 'apne2-az1',
  'ca-central-1': 'cac1-az3',
  'us-east-1': 'use1-az3',
  'us-west-1': 'usw1-az2',
};

/** Regions outside the partition `aws`, for which the template is not written. */
const otherPartition = /^(cn|us-gov|us-iso[a-z]?|eu-isoe|eusc)-/;

/** Explains why a relay can't run in a region, or returns undefined if it can. */
export function findRegionProblem(region: string): string | undefined {
  if (otherPartition.test(region))
    return `${region} is outside the partition aws, which this stack is written for`;
  return withoutFunctionUrls.has(region)
    ? `Lambda has no Function URLs in ${region}, so answers cannot stream there (AWS Lambda Developer Guide, November 2026)`
    : undefined;
}
