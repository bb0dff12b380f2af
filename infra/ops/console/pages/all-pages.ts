/** All pages, in the order of the navigation. */
import type { Routes } from '../visit/routes.ts';
import { auditPages } from './audit.ts';
import { channelActionPages } from './channels/channel-actions.ts';
import { channelFormPages } from './channels/channel-forms.ts';
import { channelPage } from './channels/channel.ts';
import { channelPages } from './channels/channels.ts';
import { chargeFormPages } from './charges/charge-forms.ts';
import { chargePages } from './charges/charges.ts';
import { accountFormPages } from './customers/account-forms.ts';
import { closeCustomerPage } from './customers/close-customer.ts';
import { grantFormPage } from './customers/grant-form.ts';
import { planPages } from './customers/plan-form.ts';
import { customerPage } from './customers/customer.ts';
import { customerPages } from './customers/customers.ts';
import { newCustomerPage } from './customers/new-customer.ts';
import { keyFormPages } from './keys/key-forms.ts';
import { keyPages } from './keys/keys.ts';
import { leakedKeyPages } from './keys/leaked.ts';
import { overviewPages } from './overview/overview.ts';
import { logPages } from './requests/log-story.ts';
import { refundPages } from './requests/refund.ts';
import { requestPages } from './requests/requests.ts';
import { statementPages } from './customers/statements.ts';
import { versionPages } from './versions.ts';

export const pages: readonly ((routes: Routes) => void)[] = [
  overviewPages,
  customerPages,
  newCustomerPage,
  grantFormPage,
  planPages,
  accountFormPages,
  closeCustomerPage,
  customerPage,
  keyPages,
  keyFormPages,
  leakedKeyPages,
  channelPages,
  channelFormPages,
  channelActionPages,
  channelPage,
  chargePages,
  chargeFormPages,
  requestPages,
  refundPages,
  logPages,
  statementPages,
  versionPages,
  auditPages,
];
