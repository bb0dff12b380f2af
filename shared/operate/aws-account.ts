/** What `doctor` reads of the AWS account and region of a deployed relay. Each reading may fail alone, with a Failure. */

export interface AwsAccount {
  /** Undefined: CloudFormation has no stack of this name. */
  stack(): Promise<DeployedStack | undefined>;
  concurrency(): Promise<Concurrency>;
  tableLimits(): Promise<TableLimits>;
  /** Whether Parameter Store answers 10,000 reads a second, which is paid, instead of 40. */
  hasFastParameters(): Promise<boolean>;
  /** Models that the region lists; a region that has none of them is an empty list. */
  models(region: string): Promise<ListedModel[]>;
  modelAccess(region: string, model: string): Promise<ModelAccess>;
  /** The region of the tables. Throws a Failure when there is none. */
  region(): Promise<string>;
}

export interface DeployedStack {
  /** In CloudFormation's words. */
  status: string;
  outputs: ReadonlyMap<string, string>;
}

export interface Concurrency {
  /** Calls at once of all functions in the account and region. */
  most: number;
  /** Of these, what no function has reserved. */
  unreserved: number;
}

/** Capacity units a second of one table. */
export interface TableLimits {
  tableReads: number;
  tableWrites: number;
}

export interface ListedModel {
  id: string;
  /** Whether its answers stream. */
  streams: boolean;
  /** False: AWS will remove it. */
  isActive: boolean;
}

export interface ModelAccess {
  isAuthorized: boolean;
  /** Whether the agreement with its vendor is made, where it needs one. */
  hasAgreement: boolean;
  isEntitled: boolean;
  isInRegion: boolean;
}
