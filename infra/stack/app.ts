/**
 * The CDK app. `cdk` runs it through `npm run app`; `node infra/stack/app.ts` alone synthesizes into cdk.out.
 */
import { createApp } from './create-app.ts';

try {
  const { app } = createApp({
    outputFolder: process.env.CDK_OUTDIR ?? 'cdk.out',
    region: process.env.CDK_DEFAULT_REGION,
    validate: process.env.CDK_VALIDATION !== 'false',
  });
  app.synth();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
