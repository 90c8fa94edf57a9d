import { type ErrorEntry, entry } from './entry.ts';

/** What a request itself is wrong about, and who may make it. */
export const requestErrors = {
  request_invalid: entry(400, false, '{reason}', 'Correct the field and send the request again.'),
  name_invalid: entry(
    400,
    false,
    '{field} {value} is not a valid name',
    'Use 1 to 63 of a-z, 0-9, "_" and "-", starting with a letter or a digit.',
  ),
  payload_not_json: entry(
    400,
    false,
    'The body is not valid JSON: {reason}',
    'Send one JSON document encoded as UTF-8.',
  ),
  payload_too_large: entry(
    413,
    false,
    '{field} has {bytes} bytes; the limit is {limit}',
    'Store the content elsewhere and submit a reference, or raise TASKLEDGER_MAX_PAYLOAD_BYTES.',
  ),
  payload_too_deep: entry(400, false, '{field} is nested deeper than {limit} levels', 'Flatten the payload.'),
  payload_has_nul: entry(
    400,
    false,
    '{field} contains a NUL character (\\u0000), which Postgres cannot store',
    'Remove the NUL character, or encode binary content as base64.',
  ),
  payload_has_invalid_unicode: entry(
    400,
    false,
    '{field} contains half of a surrogate pair, which is no Unicode text and which Postgres cannot store',
    'Send well-formed Unicode, or encode binary content as base64.',
  ),
  payload_number_out_of_range: entry(
    400,
    false,
    '{field} is a number that does not fit into a double',
    'Send it as a string.',
  ),
  payload_key_forbidden: entry(
    400,
    false,
    '{field} is named "__proto__", which is unsafe for readers in JavaScript',
    'Use another key.',
  ),
  run_at_invalid: entry(
    400,
    false,
    '{field} {value} is not a time',
    'Use an ISO 8601 instant with a zone such as 2026-01-31T09:30:00Z, or milliseconds since 1970.',
  ),
  batch_too_large: entry(
    400,
    false,
    'The batch has {count} tasks; the limit is {limit}',
    'Send smaller batches.',
  ),
  cursor_invalid: entry(
    400,
    false,
    'The cursor is not one that this API issued',
    'Start again without a cursor.',
  ),
  unsupported_media_type: entry(
    415,
    false,
    'Content type {value} is not supported',
    'Send application/json.',
  ),
  route_not_found: entry(404, false, 'No route {method} {path}', 'See /docs for the routes.'),
  method_not_allowed: entry(405, false, '{method} is not allowed on {path}', 'See /docs for the routes.'),
  rate_limited: entry(429, true, 'Too many requests', 'Retry after the time in Retry-After.'),
  key_missing: entry(401, false, 'No API key was sent', 'Send "Authorization: Bearer <key>".'),
  key_invalid: entry(
    401,
    false,
    'The API key is not known or was revoked',
    'Check the key, or create one with "taskledger key create".',
  ),
  key_not_found: entry(404, false, 'API key {keyId} is not known', 'List the keys with GET /v1/keys.'),
  scope_missing: entry(403, false, 'The API key lacks the scope "{scope}"', 'Use a key with this scope.'),
  tenant_forbidden: entry(
    403,
    false,
    'The API key does not belong to tenant {tenant}',
    'Use a key of that tenant.',
  ),
  operator_only: entry(
    403,
    false,
    "This is for operators' keys: the API key is of tenant {tenant} only",
    'Use a key of an operator: POST /v1/keys with tenant "*", or taskledger key create NAME --tenant "*", makes one; TASKLEDGER_OPERATOR_KEY is the first.',
  ),
  tenant_unknown: entry(
    404,
    false,
    'Tenant {tenant} does not exist',
    'Create it with "taskledger tenant create".',
  ),
} satisfies Record<string, ErrorEntry>;
