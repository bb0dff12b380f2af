/**
 * Copies of the tables in another region by AWS Backup, so that balances survive the loss of a region. Point-in-time recovery, which
 * every relay has, is lost with its region.
 * https://docs.aws.amazon.com/aws-backup/latest/devguide/cross-region-backup.html
 */
import { RemovalPolicy } from 'aws-cdk-lib';
import { CfnBackupPlan, CfnBackupSelection, CfnBackupVault } from 'aws-cdk-lib/aws-backup';
import { ManagedPolicy, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';
import { tableNames, tableSchemas, type TableSchema } from '../../../shared/tables/table-schemas.ts';
import type { RelayTables } from './relay-tables.ts';

export interface RelayBackupCopies {
  /** The ARN of an existing vault in another region. The stack creates nothing outside its own region. */
  vaultArn: string;
  /** The number of days to keep copies. Default: 35. */
  days?: number | undefined;
  /** Copy every hour instead of every day from 03:00 UTC. Data that is newer than the last copy is lost with the region. Default: false. */
  hourly?: boolean | undefined;
}

interface BackupCopiesProps extends RelayBackupCopies {
  relayName: string;
  tables: RelayTables;
  encryptionKey: IKey | undefined;
}

/** Deletions from the other tables must be final, and `runtime` is useless in another region. */
const copied = tableNames.filter(
  (name) => (tableSchemas[name] as TableSchema).recoverable !== false && name !== 'runtime',
);

/** The backup in this region is only the source of the copy, because the region has point-in-time recovery. */
const keptHereDays = 2;

/**
 * By default AWS Backup starts a job within 8 hours and lets it run a week, so the newest copy of an hourly plan could be 8 hours
 * old. An hour is the minimum for the start. The second time also counts from the scheduled time.
 * https://docs.aws.amazon.com/aws-backup/latest/devguide/API_BackupRuleInput.html
 */
const hourlyWindows = { startWindowMinutes: 60, completionWindowMinutes: 120 };

export class BackupCopies extends Construct {
  readonly role: Role;

  constructor(scope: Construct, id: string, props: BackupCopiesProps) {
    super(scope, id);
    const { relayName, tables, encryptionKey, vaultArn, days = 35, hourly = false } = props;
    const vault = new CfnBackupVault(this, 'Vault', {
      backupVaultName: relayName,
      ...(encryptionKey && { encryptionKeyArn: encryptionKey.keyArn }),
    });
    // Only an empty vault can be deleted.
    vault.applyRemovalPolicy(RemovalPolicy.RETAIN);
    const policy = 'service-role/AWSBackupServiceRolePolicyForBackup';
    this.role = new Role(this, 'Role', {
      assumedBy: new ServicePrincipal('backup.amazonaws.com'),
      managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName(policy)],
    });
    const plan = new CfnBackupPlan(this, 'Plan', {
      backupPlan: {
        backupPlanName: relayName,
        backupPlanRule: [
          {
            ruleName: 'copy',
            targetBackupVault: vault.ref,
            ...(hourly ? hourlyWindows : {}),
            scheduleExpression: hourly ? 'cron(0 * * * ? *)' : 'cron(0 3 * * ? *)',
            lifecycle: { deleteAfterDays: keptHereDays },
            copyActions: [{ destinationBackupVaultArn: vaultArn, lifecycle: { deleteAfterDays: days } }],
          },
        ],
      },
    });
    void new CfnBackupSelection(this, 'Tables', {
      backupPlanId: plan.ref,
      backupSelection: {
        selectionName: relayName,
        iamRoleArn: this.role.roleArn,
        resources: copied.map((name) => tables.byName[name].tableArn),
      },
    });
  }
}
