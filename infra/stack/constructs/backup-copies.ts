/**
 * Copies of the tables in another region, by AWS Backup: what is left of the money when a region is lost. Without them a
 * relay has point-in-time recovery, which lives and dies with its region.
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
  /** The ARN of a vault in another region, which its owner makes: the stack makes nothing outside its own. */
  vaultArn: string;
  /** How long copies are kept. Default: 35. */
  days?: number | undefined;
  /** Every hour, and begun within it, in place of every day from 03:00 UTC on: what is younger than a copy is lost with the region. Default: false. */
  hourly?: boolean | undefined;
}

interface BackupCopiesProps extends RelayBackupCopies {
  relayName: string;
  tables: RelayTables;
  encryptionKey: IKey | undefined;
}

/** Data deleted from the other tables must be gone, and `runtime` is of no use elsewhere. */
const copied = tableNames.filter(
  (name) => (tableSchemas[name] as TableSchema).recoverable !== false && name !== 'runtime',
);

/** The region has its own recovery; a copy is made from this one. */
const keptHereDays = 2;

/**
 * AWS Backup begins a job within 8 hours of its time and gives it a week, unless told otherwise: the newest copy of an hourly plan could be
 * of 8 hours ago. An hour is the least that it takes for the first; the second counts from the job's time, too.
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
    // A vault that holds something cannot be deleted.
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
