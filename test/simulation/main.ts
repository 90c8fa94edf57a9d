import { parseArgs } from 'node:util';
import { scenarios } from './scenarios.ts';

/** `npm run simulate -- --scenario NAME [--scale 1]`: the dispatcher's core on a virtual clock. */
const { values } = parseArgs({
  options: {
    scenario: { type: 'string', multiple: true },
    scale: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
const names = Object.keys(scenarios);
const wanted = values.scenario ?? names;
const unknown = wanted.filter((name) => !(name in scenarios));
const scale = Number(values.scale);
if (values.help || unknown.length > 0 || !(scale > 0)) {
  if (unknown.length > 0) console.error(`no such scenario: ${unknown.join(', ')}`);
  console.log(`npm run simulate -- [--scenario NAME ...] [--scale 1]\n\nScenarios: ${names.join(', ')}`);
  process.exit(values.help ? 0 : 1);
}
for (const name of wanted) {
  const figures = scenarios[name]?.(scale) ?? {};
  console.log(name);
  for (const [figure, value] of Object.entries(figures))
    console.log(`  ${figure}: ${Number.isInteger(value) ? value : value.toFixed(3)}`);
}
