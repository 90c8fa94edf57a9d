import ts from 'typescript';

/** Plain JavaScript of one source file, whose imports of `./x.ts` become `./x.js`; types are not checked. */
export const transpiled = (source: string, fileName: string): string =>
  ts.transpileModule(source, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      rewriteRelativeImportExtensions: true,
    },
  }).outputText;
