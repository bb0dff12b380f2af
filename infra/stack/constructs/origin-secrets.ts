/**
 * The numbered secrets that prove that a request came through the distribution. Function URLs are public; a
 * function refuses requests without the right header.
 */
import type { Construct } from 'constructs';
import { NumberedSecrets } from './numbered-secrets.ts';

/** The header that CloudFront adds to every request it sends to a function. */
export const originSecretHeader = 'x-relay-origin';

export interface OriginSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
}

const about = (number: number): string =>
  `Origin secret ${number}: what CloudFront shows to the relay's functions`;

export class OriginSecrets extends NumberedSecrets {
  /** The value that CloudFront sends: a reference that CloudFormation resolves during deployment. */
  readonly sent: string;
  /** The values that functions accept: references, joined by commas. */
  readonly accepted: string;

  constructor(scope: Construct, id: string, { numbers }: OriginSecretsProps) {
    super(scope, id, { numbers, about });
    const values = [...this.values.values()];
    this.sent = values.at(-1) ?? '';
    this.accepted = values.join(',');
  }
}
