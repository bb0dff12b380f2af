/**
 * Generated secrets with numbers; deploying with a new number rotates them. Functions get the values when they are deployed, so
 * no request reads the secret store.
 */
import type { RemovalPolicy } from 'aws-cdk-lib';
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';

/**
 * The header that CloudFront adds to every request for a function. Function URLs are public, so functions refuse requests without
 * one of the numbered values.
 */
export const originSecretHeader = 'x-relay-origin';

interface NumberedSecretsProps {
  /** Oldest first, at least one. */
  numbers: readonly number[];
  /** Returns the description of a secret. */
  about: (number: number) => string;
  /** By default AWS's managed key. */
  encryptionKey?: IKey | undefined;
  /** Default: secrets are deleted with the stack. */
  removalPolicy?: RemovalPolicy;
}

export class NumberedSecrets extends Construct {
  /** References by number, oldest first. CloudFormation resolves them during deployment. */
  readonly byNumber: ReadonlyMap<number, string>;
  readonly newest: string;
  /** Secrets by number, for platforms that read them when a process starts. */
  readonly secrets: ReadonlyMap<number, ISecret>;

  constructor(scope: Construct, id: string, props: NumberedSecretsProps) {
    super(scope, id);
    const { numbers, about, encryptionKey, removalPolicy } = props;
    this.secrets = new Map(
      numbers.map((number) => [
        number,
        new Secret(this, `Secret${number}`, {
          description: about(number),
          ...(encryptionKey && { encryptionKey }),
          ...(removalPolicy && { removalPolicy }),
          // Excludes punctuation, so that lists and JSON can hold the values.
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
