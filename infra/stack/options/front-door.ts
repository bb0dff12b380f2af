/** The front doors that clients can call; docs/deploy.md compares them. Imports no schema, because the packaged construct has none. */

export const frontDoors = ['cloudfront', 'cloudfront-api', 'api', 'private-api'] as const;

/** The address clients call. All but `cloudfront` have an API of API Gateway. */
export type FrontDoor = (typeof frontDoors)[number];

/** With CloudFront in front, everything behind it checks its origin secret. */
export const hasDistribution = (door: FrontDoor): boolean => door.startsWith('cloudfront');
