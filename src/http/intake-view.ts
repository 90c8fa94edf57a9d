import { type FullTenant, type FullType, RESUME_AT } from '../intake/backlog.ts';
import type { OverRate } from '../intake/rates/submission-rates.ts';

export interface IntakeReason {
  readonly code: 'backlog_full' | 'tenant_backlog_full' | 'submission_rate_limited';
  readonly sentence: string;
  readonly limit: number;
  readonly waiting?: number;
  readonly resumesAt?: number;
  readonly retryAfterMs?: number;
}

/** Whether submissions of a tenant and type are taken, and if not, what holds them up. */
export function intakeOf(
  of: { readonly tenant: string; readonly type: string },
  held: {
    readonly type: FullType | undefined;
    readonly tenant: FullTenant | undefined;
    readonly rates: readonly OverRate[];
  },
): { readonly state: 'open' | 'limited' | 'closed'; readonly reasons: readonly IntakeReason[] } {
  const full = [
    ...(held.type === undefined ? [] : [fullReason('backlog_full', `Type ${of.type}`, held.type)]),
    ...(held.tenant === undefined
      ? []
      : [fullReason('tenant_backlog_full', `Tenant ${of.tenant}`, held.tenant)]),
  ];
  const reasons = [...full, ...held.rates.map(rateReason)];
  const state = full.length > 0 ? 'closed' : reasons.length > 0 ? 'limited' : 'open';
  return { state, reasons };
}

function fullReason(
  code: 'backlog_full' | 'tenant_backlog_full',
  who: string,
  { waiting, limit }: { readonly waiting: number; readonly limit: number },
): IntakeReason {
  const resumesAt = Math.floor(limit * RESUME_AT);
  const sentence = `${who} has ${waiting} tasks waiting; the limit is ${limit}, and submissions are taken again at ${resumesAt}.`;
  return { code, sentence, waiting, limit, resumesAt };
}

function rateReason({ tenant, type, ratePerSecond, burst, retryAfterMs }: OverRate): IntakeReason {
  const who = type === undefined ? `Tenant ${tenant}` : `Tenant ${tenant} of type ${type}`;
  return {
    code: 'submission_rate_limited',
    sentence: `${who} may submit ${ratePerSecond} tasks a second, ${burst} at once; that is used up for ${retryAfterMs} ms.`,
    limit: ratePerSecond,
    retryAfterMs,
  };
}
