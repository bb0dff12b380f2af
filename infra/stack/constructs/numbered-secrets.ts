/**
 * Generated secrets with numbers, rotated by deploying with a new number. Functions get the values when they are
 * deployed, so that no request reads the secret store.
 */
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';

/**
 * The header that CloudFront adds to every request it sends to a function. Function URLs are public; a function refuses
 * requests without one of the numbered values.
 */
export const originSecretHeader = 'x-relay-origin';

interface NumberedSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
  /** What the secrets are, for their descriptions. */
  about: (number: number) => string;
}

export class NumberedSecrets extends Construct {
  /** By number, oldest first: references that CloudFormation resolves during deployment. */
  readonly byNumber: ReadonlyMap<number, string>;
  readonly newest: string;

  constructor(scope: Construct, id: string, { numbers, about }: NumberedSecretsProps) {
    super(scope, id);
    const values = numbers.map((number) =>
      new Secret(this, `Secret${number}`, {
        description: about(number),
        // Without punctuation, so that lists and JSON can hold the values.
        generateSecretString: { excludePunctuation: true, passwordLength: 48 },
        // Unwrapping puts a `{{resolve:...}}` reference into the template, never the value.
      }).secretValue.unsafeUnwrap(),
    );
    this.byNumber = new Map(numbers.map((number, index) => [number, values[index] ?? '']));
    this.newest = values.at(-1) ?? '';
  }
}
