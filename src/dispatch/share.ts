import { Allowance } from './allowance.ts';
import { KeyGates } from './key-gates.ts';
import { Lane } from './lane.ts';
import type { LiveTask } from './live-task.ts';
import type { TypeLine, TypeTerms } from './type-line.ts';

/** A tenant, over all types. There are as many as the installation has tenants, so none is ever forgotten. */
export class Tenant extends Allowance {
  readonly name: string;
  readonly shares = new Map<string, Share>();
  weight = 1;
  /** Tasks that wait, QUEUED and unclaimed included, delayed ones not. */
  backlog = 0;
  /** Whether anybody wants to know of its backlog. */
  watched = false;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

/** A tenant in one type: its waiting tasks by class, and what it may have running there. */
export class Share extends Allowance {
  readonly tenant: Tenant;
  readonly type: TypeTerms;
  /** Instead of the tenant's. */
  ownWeight: number | undefined;
  /** By class, best first; made when first needed. */
  readonly #lanes = new Map<TypeLine, (Lane | undefined)[]>();
  #gates: KeyGates | undefined;

  constructor(tenant: Tenant, type: TypeTerms) {
    super();
    this.tenant = tenant;
    this.type = type;
  }

  get weight(): number {
    return this.ownWeight ?? this.tenant.weight;
  }

  /** Whether something of it may start, as far as the tenant goes. */
  get free(): boolean {
    return this.blocks === 0 && this.tenant.blocks === 0;
  }

  get gates(): KeyGates {
    this.#gates ??= new KeyGates(this);
    return this.#gates;
  }

  lane({ line, priority }: Pick<LiveTask, 'line' | 'priority'>): Lane {
    let siblings = this.#lanes.get(line);
    if (siblings === undefined) {
      siblings = [undefined, undefined, undefined, undefined];
      this.#lanes.set(line, siblings);
    }
    let lane = siblings[priority - 1];
    if (lane === undefined) {
      lane = new Lane({ share: this, line, priority, siblings });
      siblings[priority - 1] = lane;
    }
    return lane;
  }

  /** Puts a task that nothing but its turn holds back into its lane. */
  enter(task: LiveTask): void {
    const lane = this.lane(task);
    lane.add(task);
    if (this.free) task.line.order.list(lane);
  }

  /** It has become free: its lanes take part again. */
  relist(): void {
    for (const [line, lanes] of this.#lanes) for (const lane of lanes) if (lane?.open) line.order.list(lane);
  }
}
