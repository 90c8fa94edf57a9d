import { holdsAt, type Pause, type PauseScope } from '../registry/controls.ts';
import type { Limits } from '../registry/limits.ts';
import type { Tenant as TenantSettings } from '../registry/tenants.ts';
import type { TypeSettings } from '../registry/type-settings.ts';
import { type Allowance, Block } from './allowance.ts';
import { KeyHeap } from './key-heap.ts';
import type { LiveTask } from './live-task.ts';
import { Share, Tenant } from './share.ts';
import { TokenBucket } from './token-bucket.ts';
import { type TypeLine, TypeTerms } from './type-line.ts';

/** What a tenant, or a tenant in a type, has left of its rate; see TokenBucket. */
export interface TokenState {
  readonly tenant: string;
  readonly type?: string;
  readonly tokens: number;
  readonly at: number;
}

export interface LedgerParts {
  /** The line may have something to give. */
  touch(line: TypeLine): void;
}

/**
 * Who may have how much: keeps the slots and tokens of every type, tenant and share, by the settings and pauses that
 * were last heard of. Counts follow the log, so they are right also for a leader that has just taken over.
 *
 * Invariant: an allowance's `blocks` change only in `#judge` and `#set`, and whatever becomes free is put back at once.
 */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #tenants = new Map<string, Tenant>();
  readonly #types = new Map<string, TypeTerms>();
  readonly #wakes = new KeyHeap<Allowance>();
  /** Until then (ms since 1970) nothing starts that a limit of concurrency bounds: see `holdLimited`. */
  #heldUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  get watched(): Tenant[] {
    return [...this.#tenants.values()].filter((tenant) => tenant.watched);
  }

  share(tenantName: string, type: string): Share {
    const tenant = this.#tenant(tenantName);
    let share = tenant.shares.get(type);
    if (share === undefined) {
      const terms = this.type(type);
      share = new Share(tenant, terms);
      tenant.shares.set(terms.type, share);
    }
    return share;
  }

  type(name: string): TypeTerms {
    let terms = this.#types.get(name);
    if (terms === undefined) {
      terms = new TypeTerms(name);
      terms.keysHeld = this.#heldUntil !== Number.NEGATIVE_INFINITY;
      this.#types.set(name, terms);
    }
    return terms;
  }

  /**
   * Its turn has come: it takes a slot, and is promised a token. The token is taken when the log says that it was queued, and as
   * of then, so that the rate holds in the time of the log however long an append takes.
   */
  promise(task: LiveTask, now: number): void {
    if (task.holds) return;
    task.promised = true;
    task.share.promised += 1;
    task.share.tenant.promised += 1;
    this.#hold(task, now);
  }

  /** The log says that it was queued, by whomever: a slot and a token, unless it has them. */
  queued(task: LiveTask, storedAt: number): void {
    if (task.holds && !task.promised) return;
    this.#breakPromise(task);
    this.charge(task.share, storedAt);
    if (!task.holds) this.#hold(task, storedAt);
  }

  /** The task holds a slot from before, token and all. */
  hold(task: LiveTask): void {
    if (!task.holds) this.#hold(task, 0);
  }

  /** A token for a start. */
  charge(share: Share, at: number): void {
    for (const of of [share.tenant, share]) {
      if (of.bucket === undefined) continue;
      of.bucket.take(at);
      this.#judge(of, at);
    }
  }

  /** The task gives its slot back, if it has one, and what it was promised. */
  release(task: LiveTask): void {
    if (!task.holds) return;
    task.holds = false;
    const { share } = task;
    if (task.keyed) share.gates.released(task);
    const { promised } = task;
    this.#breakPromise(task);
    for (const of of [share, share.tenant, share.type]) {
      this.#release(of);
      if (promised && of.bucket !== undefined) this.#judge(of, of.bucket.level.at);
    }
    if (task.keyed) this.touch(share.type);
  }

  /** What the log alone cannot tell who has not read all of it. */
  get tokens(): TokenState[] {
    const states: TokenState[] = [];
    for (const tenant of this.#tenants.values()) {
      if (tenant.bucket !== undefined) states.push({ tenant: tenant.name, ...tenant.bucket.level });
      for (const [type, { bucket }] of tenant.shares)
        if (bucket !== undefined) states.push({ tenant: tenant.name, type, ...bucket.level });
    }
    return states;
  }

  /** After the settings: a rate that is no longer limited is of no interest. */
  restoreTokens(states: readonly TokenState[]): void {
    for (const { tenant, type, ...level } of states) {
      const of = this.#find(tenant, type);
      of?.bucket?.restore(level);
      if (of !== undefined) this.#judge(of, level.at);
    }
  }

  putTenant(name: string, settings: TenantSettings | undefined, now: number): void {
    const tenant = this.#tenant(name);
    tenant.weight = settings?.weight ?? 1;
    tenant.watched = settings?.maxBacklog !== undefined;
    this.#limit(tenant, settings?.limits, now);
    for (const type of new Set([...tenant.shares.keys(), ...Object.keys(settings?.types ?? {})])) {
      const share = this.share(name, type);
      const of = settings?.types?.[type];
      share.ownWeight = of?.weight;
      this.#limit(share, of, now);
    }
  }

  putType(type: string, settings: TypeSettings | undefined, now: number): void {
    const terms = this.type(type);
    terms.keyLimit = settings?.concurrencyKeyLimit ?? 1;
    this.#limit(terms, { concurrency: settings?.concurrency }, now);
    for (const tenant of this.#tenants.values()) tenant.shares.get(type)?.gates.limitChanged();
    this.touch(terms);
  }

  putPause({ tenant, type }: PauseScope, pause: Pause | undefined, now: number): void {
    const paused = this.#find(tenant, type);
    if (paused === undefined) return;
    paused.pause = pause === undefined ? undefined : { tenant, type, ...pause };
    this.#judge(paused, now);
  }

  /**
   * Another one led until a moment ago and did not hand over: what it had sent may still arrive, and would come on top of what is
   * decided now. So what has a limit of concurrency, of its own or of a key, waits until the log must have all of it.
   */
  holdLimited(until: number, now: number): void {
    this.#heldUntil = until;
    for (const terms of this.#types.values()) terms.keysHeld = true;
    for (const of of this.#allowances()) this.#judge(of, now);
  }

  /** When `advance` next has something to do (ms since 1970); Infinity when never. */
  nextWakeAt(): number {
    const heldUntil =
      this.#heldUntil === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : this.#heldUntil;
    return Math.min(this.#wakes.topKey(), heldUntil);
  }

  /** Ends pauses and blocks whose time has come. */
  advance(now: number): void {
    if (this.#heldUntil <= now) this.#endHold(now);
    while (this.#wakes.topKey() <= now) {
      const at = this.#wakes.topKey();
      const woken = this.#wakes.pop();
      if (woken === undefined || woken.wakeAt !== at) continue;
      woken.wakeAt = Number.POSITIVE_INFINITY;
      this.#judge(woken, now);
    }
  }

  /** The type may have something to give. */
  touch({ lines }: TypeTerms): void {
    for (const line of lines) this.#parts.touch(line);
  }

  #endHold(now: number): void {
    if (this.#heldUntil === Number.NEGATIVE_INFINITY) return;
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    for (const terms of this.#types.values()) {
      terms.keysHeld = false;
      this.touch(terms);
    }
    for (const of of this.#allowances()) {
      this.#judge(of, now);
      if (of instanceof Share) of.gates.limitChanged();
    }
  }

  *#allowances(): Generator<Allowance> {
    yield* this.#types.values();
    for (const tenant of this.#tenants.values()) {
      yield tenant;
      yield* tenant.shares.values();
    }
  }

  #tenant(name: string): Tenant {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = new Tenant(name);
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  #find(tenant: string | undefined, type: string | undefined): Allowance | undefined {
    if (tenant === undefined) return type === undefined ? undefined : this.type(type);
    return type === undefined ? this.#tenant(tenant) : this.share(tenant, type);
  }

  #limit(of: Allowance, limits: Limits | undefined, now: number): void {
    of.limit = limits?.concurrency ?? Number.POSITIVE_INFINITY;
    const ratePerSecond = limits?.ratePerSecond;
    if (ratePerSecond === undefined) of.bucket = undefined;
    else {
      const rate = { ratePerSecond, burst: limits?.burst ?? Math.max(1, Math.floor(ratePerSecond)) };
      if (of.bucket === undefined) of.bucket = new TokenBucket(rate);
      else of.bucket.change(rate);
    }
    this.#judge(of, now);
  }

  #hold(task: LiveTask, at: number): void {
    task.holds = true;
    const { share } = task;
    for (const of of [share.type, share.tenant, share]) {
      of.taken += 1;
      if (of.bounded) this.#judge(of, at);
    }
    if (task.keyed) share.gates.took(task);
  }

  #breakPromise(task: LiveTask): void {
    if (!task.promised) return;
    task.promised = false;
    task.share.promised -= 1;
    task.share.tenant.promised -= 1;
  }

  #release(of: Allowance): void {
    of.taken -= 1;
    if ((of.blocks & Block.concurrency) !== 0 && of.taken < of.limit)
      this.#set(of, of.blocks & ~Block.concurrency);
  }

  #judge(of: Allowance, now: number): void {
    let blocks = of.taken >= of.limit ? Block.concurrency : 0;
    if (of.pause !== undefined && holdsAt(of.pause, now)) {
      blocks |= Block.paused;
      if (of.pause.until !== undefined) this.#wake(of, Date.parse(of.pause.until));
    }
    if (now < this.#heldUntil && of.limit !== Number.POSITIVE_INFINITY) blocks |= Block.newLeader;
    const tokenAt = of.bucket?.readyAt(now, of.promised) ?? 0;
    if (tokenAt > now) {
      blocks |= Block.rate;
      this.#wake(of, tokenAt);
    }
    this.#set(of, blocks);
  }

  #set(of: Allowance, blocks: number): void {
    const opens = of.blocks !== 0 && blocks === 0;
    of.blocks = blocks;
    if (!opens) return;
    if (of instanceof TypeTerms) this.touch(of);
    else if (of instanceof Share) this.#relist(of);
    else if (of instanceof Tenant) for (const share of of.shares.values()) this.#relist(share);
  }

  #relist(share: Share): void {
    share.relist();
    this.touch(share.type);
  }

  #wake(of: Allowance, at: number): void {
    // Infinity: something else must happen first.
    if (at >= of.wakeAt) return;
    of.wakeAt = at;
    this.#wakes.push(at, of);
  }
}
