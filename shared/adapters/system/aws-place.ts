/** What an operator says about the AWS account, in place of the environment; the SDK's own chain finds the rest. */

export interface AwsPlace {
  region?: string;
  /** A profile of the AWS configuration files. */
  profile?: string;
}
