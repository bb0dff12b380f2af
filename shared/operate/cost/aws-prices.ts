/**
 * AWS's list prices in US dollars, without tax: the only place that has them. Each price names where it was read and when.
 * Whoever relies on one looks it up again at the addresses below.
 */

export const regions = ['us-east-1', 'us-west-2', 'eu-central-1', 'ap-northeast-1'] as const;
export type Region = (typeof regions)[number];

/** Where a price was read. `date`: the day of the reading, or of the page, as exactly as it is known. */
export interface PriceSource {
  what: string;
  date: string;
}

const offers = 'https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws';

export const priceSources = {
  frankfurt: {
    what: `AWS Price List, eu-central-1 (${offers}/AmazonDynamoDB, AWSLambda, AmazonCloudWatch), as a public project read it`,
    date: '2026-09-11',
  },
  tokyo: {
    what: `AWS Price List, ap-northeast-1 (${offers}/AmazonDynamoDB, AWSDataTransfer, AWSSecretsManager, AmazonCloudWatch, awswaf), as a public project read it`,
    date: '2026-09-23',
  },
  tokyoLogs: {
    what: 'AWS Price List, ap-northeast-1, CloudWatch and Lambda requests, in force from 2026-07-01, as a public project read it',
    date: '2026-07-20',
  },
  lambda: {
    what: 'AWS Price List, AWSLambda, us-east-1, in force from 2025-10-01; https://aws.amazon.com/lambda/pricing/',
    date: '2025-10-28',
  },
  lambdaRegions: {
    what: 'arm64 has one price in all regions but af-south-1, ap-east-1, eu-south-1, me-south-1 and me-central-1: table of a public project after https://aws.amazon.com/lambda/pricing/',
    date: 'not dated',
  },
  lambdaStreaming: { what: 'a public summary of https://aws.amazon.com/lambda/pricing/', date: '2026' },
  cloudFront: {
    what: 'https://aws.amazon.com/cloudfront/pricing/, first 10 TB, and the free tier of every account (stored copy)',
    date: 'not dated; after 2025-11',
  },
  cloudFrontRequests: {
    what: 'AWS Price List, AmazonCloudFront, usage types US-Requests-HTTPS-Proxy and US-DataTransfer-Out-OBytes, as a public project read it',
    date: '2026-10-08',
  },
  cloudFrontJapan: {
    what: 'a bill with the usage types JP-Requests-HTTPS-Proxy and JP-DataTransfer-Out-OBytes, published as an example',
    date: 'not dated; before 2020',
  },
  cloudFrontPlans: {
    what: 'https://aws.amazon.com/cloudfront/pricing/ and the developer guide, flat-rate-pricing-plan, as a public project read them',
    date: '2026-09-05',
  },
  dynamoDb: {
    what: 'https://aws.amazon.com/dynamodb/pricing/on-demand/ after the cut of 2024-11-01, as an article gives it',
    date: '2025-07-21',
  },
  dynamoDbStorage: {
    what: 'AWS Price List, AmazonDynamoDB, us-east-1, as a public project read it',
    date: '2026-10-08',
  },
  cloudWatch: {
    what: 'https://aws.amazon.com/cloudwatch/pricing/, us-east-1, as an article gives it',
    date: '2026-02',
  },
  secrets: {
    what: 'https://aws.amazon.com/secrets-manager/pricing/, as several articles give it',
    date: '2026',
  },
  internet: {
    what: 'https://aws.amazon.com/ec2/pricing/on-demand/, data transfer, as an article gives it',
    date: '2026',
  },
  waf: {
    what: 'https://aws.amazon.com/waf/pricing/ (one price in all regions), as articles give it',
    date: '2026',
  },
  sns: { what: 'AWS Price List, AmazonSNS, us-east-1, as a public project read it', date: '2026-10-08' },
  /** Taken to be that of us-east-1: both regions have had one price list for these services for years. */
  asVirginia: { what: 'not found for this region: the price of us-east-1', date: 'not found' },
  /** From the list as it is commonly known. */
  notFound: {
    what: 'not found in a dated source: the list price as it is commonly known',
    date: 'not found',
  },
} as const satisfies Record<string, PriceSource>;

type SourceName = keyof typeof priceSources;

export interface Price {
  unit: string;
  byRegion: Record<Region, readonly [usd: number, source: SourceName]>;
  /** What AWS gives to every account each month, for good. */
  free?: number;
}

const everywhere = (usd: number, source: SourceName): Price['byRegion'] => ({
  'us-east-1': [usd, source],
  'us-west-2': [usd, source],
  'eu-central-1': [usd, source],
  'ap-northeast-1': [usd, source],
});

const american = (usd: number, source: SourceName) =>
  ({ 'us-east-1': [usd, source], 'us-west-2': [usd, 'asVirginia'] }) as const;

export const prices = {
  /** arm64; the first 7.5 billion a month. */
  lambdaCompute: {
    unit: 'GB-second',
    free: 400_000,
    byRegion: {
      'us-east-1': [0.0000133334, 'lambda'],
      'us-west-2': [0.0000133334, 'lambdaRegions'],
      'eu-central-1': [0.0000133334, 'frankfurt'],
      'ap-northeast-1': [0.0000133334, 'lambdaRegions'],
    },
  },
  lambdaRequests: {
    unit: 'request',
    free: 1_000_000,
    byRegion: {
      ...american(0.0000002, 'lambda'),
      'eu-central-1': [0.0000002, 'frankfurt'],
      'ap-northeast-1': [0.0000002, 'tokyoLogs'],
    },
  },
  /** Of each answer the first 6 MB cost nothing. */
  lambdaStreaming: {
    unit: 'GB',
    free: 100,
    byRegion: { ...everywhere(0.008, 'notFound'), 'us-east-1': [0.008, 'lambdaStreaming'] },
  },
  /** The first 10 TB a month. */
  internet: {
    unit: 'GB',
    free: 100,
    byRegion: {
      ...american(0.09, 'internet'),
      'eu-central-1': [0.09, 'notFound'],
      'ap-northeast-1': [0.114, 'tokyo'],
    },
  },
  /** The first 10 TB a month. By where the reader is; taken to be near the region. What the function sends to CloudFront costs nothing. */
  cloudFrontOut: {
    unit: 'GB',
    free: 1024,
    byRegion: { ...everywhere(0.085, 'cloudFront'), 'ap-northeast-1': [0.114, 'cloudFront'] },
  },
  cloudFrontRequests: {
    unit: 'HTTPS request',
    free: 10_000_000,
    byRegion: {
      ...everywhere(0.000001, 'cloudFrontRequests'),
      'eu-central-1': [0.0000012, 'notFound'],
      'ap-northeast-1': [0.0000012, 'cloudFrontJapan'],
    },
  },
  /** Bodies of requests. */
  cloudFrontToOrigin: {
    unit: 'GB',
    byRegion: {
      ...everywhere(0.02, 'cloudFrontRequests'),
      'eu-central-1': [0.02, 'notFound'],
      'ap-northeast-1': [0.06, 'cloudFrontJapan'],
    },
  },
  dynamoDbWrites: {
    unit: 'write unit',
    byRegion: {
      ...american(0.000000625, 'dynamoDb'),
      'eu-central-1': [0.0000007625, 'frankfurt'],
      'ap-northeast-1': [0.000000715, 'tokyo'],
    },
  },
  dynamoDbReads: {
    unit: 'read unit',
    byRegion: {
      ...american(0.000000125, 'dynamoDb'),
      'eu-central-1': [0.0000001525, 'frankfurt'],
      'ap-northeast-1': [0.0000001425, 'tokyo'],
    },
  },
  dynamoDbStorage: {
    unit: 'GB-month',
    free: 25,
    byRegion: {
      ...american(0.25, 'dynamoDbStorage'),
      'eu-central-1': [0.306, 'frankfurt'],
      'ap-northeast-1': [0.285, 'notFound'],
    },
  },
  /** Point-in-time recovery. */
  dynamoDbBackup: {
    unit: 'GB-month',
    byRegion: {
      ...american(0.2, 'notFound'),
      'eu-central-1': [0.2448, 'frankfurt'],
      'ap-northeast-1': [0.228, 'notFound'],
    },
  },
  logs: {
    unit: 'GB',
    free: 5,
    byRegion: {
      ...american(0.5, 'cloudWatch'),
      'eu-central-1': [0.63, 'frankfurt'],
      'ap-northeast-1': [0.76, 'tokyo'],
    },
  },
  logStorage: {
    unit: 'GB-month',
    byRegion: {
      ...american(0.03, 'cloudWatch'),
      'eu-central-1': [0.0324, 'frankfurt'],
      'ap-northeast-1': [0.033, 'tokyoLogs'],
    },
  },
  /** For the share of the month's hours in which it has a value. */
  metrics: {
    unit: 'metric-month',
    free: 10,
    byRegion: { ...everywhere(0.3, 'cloudWatch'), 'ap-northeast-1': [0.3, 'tokyo'] },
  },
  /** An alarm that reckons with two metrics is billed as two. */
  alarms: {
    unit: 'metric-month',
    free: 10,
    byRegion: {
      ...everywhere(0.1, 'cloudWatch'),
      'eu-central-1': [0.1, 'frankfurt'],
      'ap-northeast-1': [0.1, 'tokyo'],
    },
  },
  /** Free while it draws at most 50 metrics. */
  dashboards: { unit: 'dashboard-month', free: 3, byRegion: everywhere(3, 'cloudWatch') },
  secrets: {
    unit: 'secret-month',
    byRegion: { ...everywhere(0.4, 'secrets'), 'ap-northeast-1': [0.4, 'tokyo'] },
  },
  secretReads: { unit: 'call', byRegion: everywhere(0.05 / 10_000, 'secrets') },
  /** With one rule. */
  webAcl: { unit: 'month', byRegion: everywhere(5 + 1, 'waf') },
  webAclRequests: { unit: 'request', byRegion: everywhere(0.0000006, 'waf') },
  notices: { unit: 'publication', free: 1_000_000, byRegion: everywhere(0.0000005, 'sns') },
} as const satisfies Record<string, Price>;

export type PriceName = keyof typeof prices;

/** CloudFront at one price a month for one distribution, a web ACL included; more than the allowance is slowed down, not billed. */
export interface FlatRatePlan {
  usd: number;
  requests: number;
  gigabytesOut: number;
}

const terabytes = 1024;

/** Source: `cloudFrontPlans`. The first plan that allows the traffic is the one to compare with. */
export const flatRatePlans = {
  free: { usd: 0, requests: 1_000_000, gigabytesOut: 100 },
  pro: { usd: 15, requests: 10_000_000, gigabytesOut: 50 * terabytes },
  business: { usd: 200, requests: 125_000_000, gigabytesOut: 50 * terabytes },
  premium: { usd: 1000, requests: 500_000_000, gigabytesOut: 50 * terabytes },
} as const satisfies Record<string, FlatRatePlan>;

export type FlatRatePlanName = keyof typeof flatRatePlans;
