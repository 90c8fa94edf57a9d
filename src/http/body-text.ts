import { checkText } from '../intake/json-check.ts';

/** Throws what makes a free text unfit to be stored or asked for: NUL, lone surrogates. */
export function checkStorable(text: string, field: string): void {
  const found = checkText(text, field);
  if (found !== undefined) throw found.error;
}
