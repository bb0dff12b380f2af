/**
 * Generated secrets with numbers, rotated by deploying with a new number. Functions get the values when they are
 * deployed, so that no request reads the secret store.
 */
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';

/**
 * The header that CloudFront adds to every request it sends to a function. Function URLs are public; a function refuses
 * requests without one of the numbered values.
 */
export const originSecretHeader = 'x-relay-origin';

interface NumberedSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
  /** Describes a secret for its description. */
  about: (number: number) => string;
  /** Default: AWS's managed key. */
  encryptionKey?: IKey | undefined;
}

export class NumberedSecrets extends Construct {
  /** By number, oldest first: references that CloudFormation resolves during deployment. */
  readonly byNumber: ReadonlyMap<number, string>;
  readonly newest: string;
  /** By number: for platforms that read them when a process starts. */
  readonly secrets: ReadonlyMap<number, ISecret>;

  constructor(scope: Construct, id: string, { numbers, about, encryptionKey }: NumberedSecretsProps) {
    super(scope, id);
    this.secrets = new Map(
      numbers.map((number) => [
        number,
        new Secret(this, `Secret${number}`, {
          description: about(number),
          ...(encryptionKey && { encryptionKey }),
          // Without punctuation, so that lists and JSON can hold the values.
          generateSecretString: { excludePunctuation: true, passwordLength: 48 },
        }),
      ]),
    );
    this.byNumber = new Map(
      // Unwrapping puts a `{{resolve:...}}` reference into the template, never the value.
      [...this.secrets].map(([number, secret]) => [number, secret.secretValue.unsafeUnwrap()]),
    );
    this.newest = [...this.byNumber.values()].at(-1) ?? '';
  }
}
