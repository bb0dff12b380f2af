/**
 * The process of `npm run deploy -- --stage S [--accept-drop NAME] [arguments of cdk deploy]`. Must never drop an option of the deployed
 * stack without `--accept-drop`.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { deployStage } from './deploy-stage.ts';

const folder = join(import.meta.dirname, '..', '..');

function runCdk(args: readonly string[]): Promise<number> {
  const child = spawn('cdk', args, { cwd: folder, stdio: 'inherit' });
  // A terminal sends SIGINT to CDK too, and CDK decides when to stop.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => resolve(code ?? 1));
  });
}

try {
  process.exitCode = await deployStage(process.argv.slice(2), {
    folder,
    environment: process.env,
    print: (line) => {
      console.error(line);
    },
    cdk: runCdk,
  });
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
