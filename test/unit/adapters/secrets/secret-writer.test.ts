import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSecretWriter } from '../../../../shared/adapters/secrets/secret-writer.ts';

const writerWith = (kind: string, message: string) => {
  vi.stubGlobal('fetch', async () => Response.json({ __type: kind, message }, { status: 400 }));
  return createSecretWriter({
    target: { stack: 'relay', local: false },
    explain: (error) => new Error(`explained: ${String(error)}`),
    environment: {},
    aws: async () => ({
      region: 'eu-west-1',
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'x' },
    }),
  });
};

afterEach(() => vi.unstubAllGlobals());

describe('removing a secret', () => {
  it.each([
    ['ssm:/relay/relay/old', 'ParameterNotFound', ''],
    ['secretsmanager:relay/old', 'ResourceNotFoundException', ''],
    // As Secrets Manager answers until the 30 days are over.
    [
      'secretsmanager:relay/old',
      'InvalidRequestException',
      "You can't perform this operation on the secret because it was marked for deletion.",
    ],
  ])('accepts that it is gone already: %s, %s', async (reference, kind, message) => {
    await expect(writerWith(kind, message).remove(reference)).resolves.toBeUndefined();
  });

  it('reports a refusal', async () => {
    const remove = writerWith('InvalidRequestException', 'The secret has replicas.').remove(
      'secretsmanager:relay/old',
    );
    await expect(remove).rejects.toThrow('explained');
  });
});
