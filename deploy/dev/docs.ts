import type { HttpParts } from '../../src/http/parts.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { signalsTable } from '../../src/observe/signals.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { configurationTable, OBSERVE_README, routesTable, updateReadme } from '../../test/support/readme.ts';

// The routes describe themselves; nothing of what answers them is needed.
const parts = { config: loadConfig({}), clock: systemClock, logger: silentLogger, metrics: createMetrics() };
const { app } = await createHttpServer(parts as unknown as HttpParts);
await app.ready();
const openApi = app.swagger() as unknown as Parameters<typeof routesTable>[0];
await updateReadme({ configuration: configurationTable(), routes: routesTable(openApi) });
await updateReadme({ signals: signalsTable() }, OBSERVE_README);
await app.close();
