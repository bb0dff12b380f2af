/**
 * Generated secrets with numbers, rotated by deploying with a new number. Functions get the values when they are
 * deployed, so that no request reads the secret store.
 */
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';

interface NumberedSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
  /** What the secrets are, for their descriptions. */
  about: (number: number) => string;
}

class NumberedSecrets extends Construct {
  /** By number, oldest first: references that CloudFormation resolves during deployment. */
  readonly values: ReadonlyMap<number, string>;

  constructor(scope: Construct, id: string, { numbers, about }: NumberedSecretsProps) {
    super(scope, id);
    this.values = new Map(
      numbers.map((number) => [
        number,
        new Secret(this, `Secret${number}`, {
          description: about(number),
          // Without punctuation, so that lists and JSON can hold the values.
          generateSecretString: { excludePunctuation: true, passwordLength: 48 },
          // Unwrapping puts a `{{resolve:...}}` reference into the template, never the value.
        }).secretValue.unsafeUnwrap(),
      ]),
    );
  }
}

// The numbered secrets that prove that a request came through the distribution. Function URLs are public; a
// function refuses requests without the right header.

/** The header that CloudFront adds to every request it sends to a function. */
export const originSecretHeader = 'x-relay-origin';

interface OriginSecretsProps {
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

// The numbered keys that seal the state of turns: the last seals, all open.

interface SealKeysProps {
  /** Ascending, at least one. */
  numbers: readonly number[];
}

export class SealKeys extends NumberedSecrets {
  /** The value of `SEAL_KEYS`: a JSON object of number to reference. */
  readonly variable: string;

  constructor(scope: Construct, id: string, { numbers }: SealKeysProps) {
    super(scope, id, {
      numbers,
      about: (number) =>
        `Seal key ${number}: seals the state of turns that clients keep and the relay stores`,
    });
    this.variable = JSON.stringify(Object.fromEntries(this.values));
  }
}
