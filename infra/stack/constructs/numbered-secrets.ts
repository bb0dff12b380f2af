/**
 * Generated secrets with numbers, rotated by deploying with a new number. Functions get the values when they are
 * deployed, so that no request reads the secret store.
 */
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';

export interface NumberedSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
  /** What the secrets are, for their descriptions. */
  about: (number: number) => string;
}

export class NumberedSecrets extends Construct {
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
