import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { settings } from '../../src/platform/config.ts';

export const README = fileURLToPath(new URL('../../README.md', import.meta.url));

export const OBSERVE_README = fileURLToPath(new URL('../../src/observe/README.md', import.meta.url));

/** The code blocks of one language, in order. */
export const blocks = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1] ?? '');

/** The code of the `@example` of every docstring, in order; an example ends its docstring. */
export const examples = (source: string): string[] =>
  [...source.matchAll(/^ \* @example\n((?: \*.*\n)+?) \*\/$/gm)].map((match) =>
    (match[1] ?? '').replaceAll(/^ \* ?/gm, ''),
  );

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
export function section(text: string, name: string): string {
  const found = new RegExp(`<!-- ${name} -->\\n(.*?)<!-- /${name} -->`, 's').exec(text);
  if (found === null) throw new Error(`README has no section ${name}`);
  return (found[1] ?? '').trim();
}

export const withSection = (text: string, name: string, content: string): string =>
  text.replace(
    new RegExp(`<!-- ${name} -->\\n.*?<!-- /${name} -->`, 's'),
    () => `<!-- ${name} -->\n${content}\n<!-- /${name} -->`,
  );

/** The table of every setting, as the README shows it. */
export function configurationTable(): string {
  const rows = Object.values(settings).map(({ env, fallback, doc }) => {
    const value = fallback === undefined || fallback === '' ? '' : `\`${String(fallback)}\``;
    return `| \`${env}\` | ${value} | ${doc} |`;
  });
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly summary?: string }>>>>;
}

/** The table of every route that the OpenAPI document has. */
export function routesTable({ paths }: OpenApi): string {
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { summary }]) =>
        `| \`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}\` | ${summary ?? ''} |`,
    ),
  );
  return ['| route | does |', '|---|---|', ...rows].join('\n');
}

/** Rewrites the generated sections; `npm run docs` calls it. */
export async function updateReadme(
  sections: Readonly<Record<string, string>>,
  readme = README,
): Promise<void> {
  let text = await readFile(readme, 'utf8');
  for (const [name, content] of Object.entries(sections)) text = withSection(text, name, content);
  await writeFile(readme, text);
}
