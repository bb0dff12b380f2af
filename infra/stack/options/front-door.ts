/** The ways of clients to the functions: docs/deploy.md compares them. No schema is imported here: the construct in its package has none. */

export const frontDoors = ['cloudfront', 'cloudfront-api', 'api', 'private-api'] as const;

/** What clients call; `api` is an API of API Gateway, which `cloudfront` alone has none of. */
export type FrontDoor = (typeof frontDoors)[number];

/** Whether CloudFront is in front, whose origin secret everything behind it checks. */
export const hasDistribution = (door: FrontDoor): boolean => door.startsWith('cloudfront');
