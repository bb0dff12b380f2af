/**
 * The numbered secrets that prove that a request came through the distribution. Function URLs are public; a
 * function refuses requests without the right header.
 */
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';

/** The header that CloudFront adds to every request it sends to a function. */
export const originSecretHeader = 'x-relay-origin';

export interface OriginSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
}

export class OriginSecrets extends Construct {
  /** The value that CloudFront sends: a reference that CloudFormation resolves during deployment. */
  readonly sent: string;
  /** The values that functions accept: references, joined by commas. */
  readonly accepted: string;

  constructor(scope: Construct, id: string, props: OriginSecretsProps) {
    super(scope, id);
    const values = props.numbers.map((number) =>
      new Secret(this, `Secret${number}`, {
        description: `Origin secret ${number}: what CloudFront shows to the relay's functions`,
        generateSecretString: { excludePunctuation: true, passwordLength: 48 },
        // Unwrapping puts a `{{resolve:...}}` reference into the template, never the value.
      }).secretValue.unsafeUnwrap(),
    );
    this.sent = values.at(-1) ?? '';
    this.accepted = values.join(',');
  }
}
