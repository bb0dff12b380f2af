/** Two stages of a relay, deployed by a pipeline: each push goes to beta, then to live after somebody has approved it. */
import { App, Stack, Stage } from 'aws-cdk-lib';
import { BuildSpec } from 'aws-cdk-lib/aws-codebuild';
import { PipelineType } from 'aws-cdk-lib/aws-codepipeline';
import { CodePipeline, CodePipelineSource, ManualApprovalStep, ShellStep } from 'aws-cdk-lib/pipelines';
import type { Construct } from 'constructs';
import { Relay, type RelayProps } from 'relay';

// Replace these five values.
const account = '123456789012';
const region = 'eu-central-1';
const repository = 'acme/models';
const connectionArn = `arn:aws:codeconnections:${region}:${account}:connection/00000000-0000-0000-0000-000000000000`;
const alarmEmail = 'ops@example.com';

const env = { account, region };

class RelayStage extends Stage {
  readonly baseUrl;

  constructor(scope: Construct, stage: string, props: RelayProps) {
    super(scope, stage, { env });
    const stack = new Stack(this, 'relay', { stackName: `relay-${stage}` });
    // The name is the prefix of all tables and secrets, so two stages can share an account.
    this.baseUrl = new Relay(stack, 'Relay', { name: `relay-${stage}`, ...props }).baseUrlOutput;
  }
}

const app = new App();
const pipeline = new CodePipeline(new Stack(app, 'relay-pipeline', { env }), 'Pipeline', {
  pipelineType: PipelineType.V2,
  // `app.ts` needs Node 22.18 or later; CodeBuild's default is older.
  codeBuildDefaults: {
    partialBuildSpec: BuildSpec.fromObject({
      phases: { install: { 'runtime-versions': { nodejs: '24' } } },
    }),
  },
  synth: new ShellStep('Synth', {
    input: CodePipelineSource.connection(repository, 'main', { connectionArn }),
    commands: ['npm ci', 'npx cdk synth'],
  }),
});

const beta = new RelayStage(app, 'beta', { alarmEmail });
const checkHealth = new ShellStep('CheckHealth', {
  envFromCfnOutputs: { BASE_URL: beta.baseUrl },
  commands: ['curl --fail --silent --show-error --retry 5 --retry-all-errors "$BASE_URL/models"'],
});
pipeline.addStage(beta, { post: [checkHealth] });
pipeline.addStage(new RelayStage(app, 'live', { alarmEmail }), { pre: [new ManualApprovalStep('Approve')] });

app.synth();
