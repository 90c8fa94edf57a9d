/** Import boundaries. The flow is intake -> log -> dispatch -> worker -> projections -> query; only main.ts and its roles wire it. */

/** What each folder of `src` may import, besides itself. The steps do not import each other. */
const mayImport = {
  domain: [],
  platform: ['domain'],
  observe: ['domain', 'platform'],
  log: ['domain', 'platform', 'observe'],
  registry: ['domain', 'platform', 'observe', 'log'],
  intake: ['domain', 'platform', 'observe', 'log', 'registry'],
  schedules: ['domain', 'platform', 'observe', 'log', 'registry'],
  operations: ['domain', 'platform', 'observe', 'log', 'registry'],
  dispatch: ['domain', 'platform', 'observe', 'log', 'registry'],
  retention: ['domain', 'platform', 'observe', 'log', 'registry'],
  worker: ['domain', 'platform', 'observe', 'log', 'registry'],
  backup: ['domain', 'platform', 'log'],
};

const folderRules = Object.entries(mayImport).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import ${['only itself', ...others].join(', ')}`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^(src|projections)/', pathNot: `^src/(${[folder, ...others].join('|')})/` },
}));

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'domain-is-pure',
      comment: 'domain imports nothing but zod and its own files: no I/O, no clock, no randomness',
      severity: 'error',
      from: { path: '^src/domain/', pathNot: '\\.(unit|contract)\\.test\\.ts$' },
      to: { pathNot: ['^src/domain/', '^node_modules/zod/'] },
    },
    ...folderRules,
    {
      name: 'query-reads-rows',
      comment:
        'query answers from rows, without the log; the past it folds as the tasks read model folds it; a row is what the read model wrote',
      severity: 'error',
      from: { path: '^src/query/' },
      to: {
        path: '^(src|projections)/',
        pathNot:
          '^src/(query|domain|platform|observe|registry)/|^projections/(tasks/apply|dead_letters/row).ts',
      },
    },
    {
      name: 'projections-are-pure-over-the-engine',
      severity: 'error',
      from: { path: '^projections/(?!engine/)([^/]+)/' },
      to: {
        path: '^(src|projections)/',
        pathNot: ['^src/domain/', '^projections/engine/', '^projections/$1/'],
      },
    },
    {
      name: 'engine-knows-log-and-platform',
      severity: 'error',
      from: { path: '^projections/engine/' },
      to: {
        path: '^(src|projections)/',
        pathNot: '^(src/(domain|log|platform|observe)|projections/engine)/',
      },
    },
    {
      name: 'cli-reaches-the-server-over-http',
      comment: 'but for backup and restore, which are needed when there may be no server: they talk to NATS',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: {
        path: '^(src|projections)/',
        pathNot: '^src/(cli|domain|platform|backup|query)/|^src/log/subjects.ts',
      },
    },
    {
      name: 'cli-knows-the-shapes-of-answers',
      comment: 'what the API passes on as it was read: types alone, nothing that runs',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/query/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only-main-wires',
      comment: 'nobody imports the composition root, and it alone the roles of a process',
      severity: 'error',
      from: { pathNot: '^src/(main|cli/main)\\.ts$|^src/roles/' },
      to: { path: '^src/(main\\.ts$|roles/)' },
    },
    {
      name: 'no-orphan-deps',
      severity: 'error',
      from: { path: '^(src|projections)/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.(unit|contract|int|e2e)\\.test\\.ts$' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types'],
    },
  },
};
