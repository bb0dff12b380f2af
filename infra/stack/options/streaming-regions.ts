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
