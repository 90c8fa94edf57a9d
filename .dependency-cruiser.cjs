/** Import boundaries. The flow is intake -> log -> dispatch -> worker -> projections -> query; only main.ts wires it. */
const steps = ['intake', 'schedules', 'operations', 'dispatch', 'worker', 'query'];

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
    {
      name: 'log-knows-domain-and-platform-only',
      severity: 'error',
      from: { path: '^src/log/' },
      to: { path: '^(src|projections)/', pathNot: '^src/(log|domain|platform|observe)/' },
    },
    ...steps.map((step) => ({
      name: `${step}-stands-alone`,
      comment:
        'the steps import domain, log and platform, not each other; query folds the past as the tasks read model folds it',
      severity: 'error',
      from: { path: `^src/${step}/` },
      to: {
        path: '^(src|projections)/',
        pathNot: `^src/(${step}|domain|log|platform|observe|registry)/${step === 'query' ? '|^projections/tasks/apply.ts' : ''}`,
      },
    })),
    {
      name: 'registry-knows-domain-log-platform',
      severity: 'error',
      from: { path: '^src/registry/' },
      to: { path: '^(src|projections)/', pathNot: '^src/(registry|domain|log|platform|observe)/' },
    },
    {
      name: 'query-imports-no-step',
      severity: 'error',
      from: { path: '^src/query/' },
      to: { path: '^src/(intake|schedules|operations|dispatch|worker|log|http|cli)/' },
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
      to: { path: '^(src|projections)/', pathNot: '^src/(cli|domain|platform|backup)/|^src/log/subjects.ts' },
    },
    {
      name: 'backup-knows-log-and-platform',
      severity: 'error',
      from: { path: '^src/backup/' },
      to: { path: '^(src|projections)/', pathNot: '^src/(backup|domain|log|platform)/' },
    },
    {
      name: 'platform-knows-nobody',
      severity: 'error',
      from: { path: '^src/platform/' },
      to: { path: '^(src|projections)/', pathNot: '^src/(platform|domain)/' },
    },
    {
      name: 'observe-knows-platform-only',
      severity: 'error',
      from: { path: '^src/observe/' },
      to: { path: '^(src|projections)/', pathNot: '^src/(observe|platform|domain)/' },
    },
    {
      name: 'only-main-wires',
      comment: 'nobody imports the composition root',
      severity: 'error',
      from: { pathNot: '^src/(main|cli/main)\\.ts$' },
      to: { path: '^src/main\\.ts$' },
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
