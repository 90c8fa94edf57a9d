import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamInfo,
} from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from './subjects.ts';

/** What is seen of the streams: nothing works while there are troubles; remarks are worth knowing. */
export interface StreamsLook {
  readonly troubles: readonly string[];
  readonly remarks: readonly string[];
}

export interface StreamsCheck {
  look(): Promise<StreamsLook>;
}

/** A copy that the leader has not heard for longer is away. */
const AWAY_NS = 10_000_000_000;
/** Share of a size limit from which on it is told of. */
const NEARLY_FULL = 0.9;

/**
 * Whether the streams and buckets, and the given consumers, are there with a majority of their
 * copies. Each is asked for once a look.
 */
export function createStreamsCheck({
  nc,
  names: { streams, buckets },
  needed = [buckets.leaders, buckets.workers],
  consumers = () => [],
}: {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'streams' | 'buckets'>;
  /** Buckets; those that work flows through when absent. */
  readonly needed?: readonly string[];
  readonly consumers?: () => readonly { readonly stream: string; readonly consumer: string }[];
}): StreamsCheck {
  const watched = [...Object.values(streams), ...needed.map((name) => `KV_${name}`)];
  return {
    async look() {
      const jsm = await jetstreamManager(nc, { checkAPI: false });
      const looks = await Promise.all([
        ...watched.map((stream) => lookAt(stream, async () => judgeStream(await jsm.streams.info(stream)))),
        ...consumers().map(({ stream, consumer }) =>
          lookAt(`consumer ${consumer} of ${stream}`, async () => {
            await jsm.consumers.info(stream, consumer);
            return FINE;
          }),
        ),
        lookAt('the account', () => storageOf(jsm)),
      ]);
      return {
        troubles: looks.flatMap(({ troubles }) => troubles),
        remarks: looks.flatMap(({ remarks }) => remarks),
      };
    },
  };
}

const FINE: StreamsLook = { troubles: [], remarks: [] };
const trouble = (text: string): StreamsLook => ({ troubles: [text], remarks: [] });

async function lookAt(what: string, look: () => Promise<StreamsLook>): Promise<StreamsLook> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return trouble(`${what} is gone`);
    return trouble(`${what} does not answer: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * What a stream's leader says of its copies and its size. A server that has taken JetStream out of service, as when its disk
 * was full, is not offline: its copy just takes nothing and was not heard of since the leader leads.
 */
export function judgeStream({
  config: { name, num_replicas: copies, max_bytes: limit },
  state: { bytes },
  cluster,
}: Pick<StreamInfo, 'config' | 'state' | 'cluster'>): StreamsLook {
  const away = (cluster?.replicas ?? []).filter((peer) => peer.offline === true || peer.active > AWAY_NS);
  const present = copies - away.length;
  const deaf = (cluster?.replicas ?? []).filter(
    (peer) => !away.includes(peer) && !peer.current && peer.active === 0 && (peer.lag ?? 0) > 0,
  );
  const share = limit > 0 ? bytes / limit : 0;
  const copiesText = `${name}: ${present} of ${copies} copies, without ${away.map((peer) => peer.name).join(', ')}`;
  return {
    troubles: [
      ...(cluster !== undefined && !cluster.leader ? [`${name} has no leader`] : []),
      ...(2 * present <= copies ? [`${copiesText}: no majority, nothing can be stored`] : []),
    ],
    remarks: [
      ...(away.length > 0 && 2 * present > copies ? [copiesText] : []),
      ...deaf.map((peer) => `${name}: the copy on ${peer.name} is ${peer.lag} behind and silent`),
      ...(share >= NEARLY_FULL ? [`${name} fills ${percent(share)} of its ${limit} bytes`] : []),
    ],
  };
}

/** An account without a limit of its own says -1; that of the server is not told to it. */
async function storageOf(jsm: JetStreamManager): Promise<StreamsLook> {
  const { storage, limits } = await jsm.getAccountInfo();
  return judgeStorage(storage, limits.max_storage);
}

export function judgeStorage(used: number, limit: number): StreamsLook {
  const share = limit > 0 ? used / limit : 0;
  if (share < NEARLY_FULL) return FINE;
  const text = `the account fills ${percent(share)} of its ${limit} bytes of storage`;
  return share < 1 ? { troubles: [], remarks: [text] } : trouble(`${text}: nothing can be stored`);
}

const percent = (share: number): string => `${Math.floor(share * 100)} %`;
