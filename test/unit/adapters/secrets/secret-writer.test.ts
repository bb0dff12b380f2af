import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createSecretWriter } from '../../../../shared/adapters/secrets/secret-writer.ts';
import { listening } from '../../../support/listening.ts';

const writerWith = async (kind: string, message: string) => {
  const refuse = createServer((_request, response) => {
    response.writeHead(400).end(JSON.stringify({ __type: kind, message }));
  });
  return createSecretWriter({
    target: { stack: 'relay', local: false },
    explain: (error) => new Error(`explained: ${String(error)}`),
    environment: { AWS_ENDPOINT_URL: await listening(refuse) },
    aws: async () => ({
      region: 'eu-west-1',
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'x' },
    }),
  });
};

describe('deleting a secret', () => {
  it.each([
    ['ssm:/relay/relay/old', 'ParameterNotFound', ''],
    ['secretsmanager:relay/old', 'ResourceNotFoundException', ''],
    // Secrets Manager's answers until the 30 days are over.
    [
      'secretsmanager:relay/old',
      'InvalidRequestException',
      "You can't perform this operation on the secret because it was marked for deletion.",
    ],
  ])('succeeds when it is already deleted: %s, %s', async (reference, kind, message) => {
    const writer = await writerWith(kind, message);
    await expect(writer.remove(reference)).resolves.toBeUndefined();
  });

  it('reports a rejection', async () => {
    const writer = await writerWith('InvalidRequestException', 'The secret has replicas.');
    await expect(writer.remove('secretsmanager:relay/old')).rejects.toThrow('explained');
  });
});
