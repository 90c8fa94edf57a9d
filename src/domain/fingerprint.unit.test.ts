import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { errorShape, shapeOf } from './fingerprint.ts';

const of = (message: string, name = 'Error', code?: string) =>
  errorShape({ name, message, ...(code === undefined ? {} : { code }) }).fingerprint;

describe('occurrences of one error have one fingerprint', () => {
  test.each<[what: string, ...messages: string[]]>([
    [
      'addresses and ports',
      'connect ECONNREFUSED 127.0.0.1:5432',
      'connect ECONNREFUSED 10.1.200.3:6432',
      'connect ECONNREFUSED [::1]:5432',
      'connect ECONNREFUSED fe80:0:0:1::12:443',
    ],
    [
      'hosts',
      'getaddrinfo ENOTFOUND db-1.prod.internal:5432',
      'getaddrinfo ENOTFOUND db-7.prod.internal:5433',
    ],
    [
      'ids',
      'Task 01890a5d-ac96-774b-bcce-b302099a8057 not found',
      'Task 6f1c1e22-0000-4000-8000-00000000000f not found',
    ],
    [
      'object ids and hashes',
      'no such object 507f1f77bcf86cd799439011',
      'no such object 65a1b2c3d4e5f60718293a4b',
      'no such object d41d8cd98f00b204e9800998ecf8427e',
    ],
    ['prefixed ids', 'No such customer: cus_NffrFeUfNV2Hib', 'No such customer: cus_9s6XKzkNRiz8i3'],
    ['pointers', 'segfault at 0x7ffdeadbeef0', 'segfault at 0x10'],
    [
      'paths',
      "ENOENT: no such file or directory, open '/var/media/a.mp4'",
      "ENOENT: no such file or directory, open '/srv/b/c/d 2.mov'",
    ],
    ['bare paths', 'cannot read /tmp/clip-1/part.ts', 'cannot read /data/x/y/z.mkv'],
    ['Windows paths', 'cannot read C:\\media\\a.mp4', 'cannot read D:\\x\\y\\b.avi'],
    [
      'positions in sources',
      'undefined is not a function (at handler.js:10:5)',
      'undefined is not a function (at transcode.js:212:17)',
      'undefined is not a function (at /app/dist/handler.js:11:7)',
    ],
    [
      'positions in documents',
      'Unexpected token } in JSON at position 17',
      'Unexpected token } in JSON at position 4021',
    ],
    [
      'quoted values',
      'duplicate key value violates unique constraint "users_email_key"',
      'duplicate key value violates unique constraint "orders_pkey"',
    ],
    ['quoted values with escapes', 'bad value "a\\"b" here', 'bad value "c" here', 'bad value `d` here'],
    ['durations', 'timeout after 30s', 'timeout after 1500 ms', 'timeout after 2.5 min'],
    [
      'sizes',
      'payload of 12,345 bytes is too large',
      'payload of 1.5MB is too large',
      'payload of 9 KiB is too large',
    ],
    ['frames', 'frame 1920x1080 rejected', 'frame 640x480 rejected'],
    ['times', 'lock held since 2026-01-31T09:30:00.123Z', 'lock held since 2025-12-01 10:00:00+02:00'],
    ['times of day', 'stalled at 00:01:07.25', 'stalled at 12:59:59.9'],
    ['urls', 'GET https://api.acme.test/v1/u/42?x=1 failed', 'GET http://localhost:8080/ failed'],
    [
      'status codes of the same kind',
      'Request failed with status code 503',
      'Request failed with status code 502',
    ],
    ['mail addresses', 'mailbox ada@example.org is full', 'mailbox bob.b+x@mail.example.com is full'],
    ['numbered names', 'shard-12 is read only', 'shard-3 is read only'],
    ['exit codes', 'ffmpeg exited with code 1', 'ffmpeg exited with code -11', 'ffmpeg exited with code 254'],
    ['white space', 'a  b\n c', 'a b c'],
    ['python', "KeyError: 'user_12'", "KeyError: 'order_9'"],
    ['ranges', 'index 7 out of range [0, 5]', 'index 12 out of range [0, 11]'],
  ])('whatever their %s', (_, first, ...others) => {
    for (const other of others) expect([shapeOf(other), of(other)]).toEqual([shapeOf(first), of(first)]);
  });
});

describe('different errors have different fingerprints', () => {
  test('by message, name and code', () => {
    const all = [
      of('codec missing'),
      of('codec unknown'),
      of('codec missing', 'TypeError'),
      of('codec missing', 'Error', 'E_CODEC'),
      of('codec missing', 'Error', 'E_MISSING'),
      of(''),
      of('connect ECONNREFUSED 127.0.0.1:5432'),
      of('connect ETIMEDOUT 127.0.0.1:5432'),
      of('read ECONNRESET'),
      of("can't open the file"),
      of("can't read the file"),
      of('it failed/succeeded'),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  test('words are kept, contractions too', () => {
    expect(shapeOf("can't open it, because it isn't there")).toBe("can't open it, because it isn't there");
    expect(shapeOf('Cannot read properties of undefined (reading "x")')).toBe(
      'Cannot read properties of undefined (reading <value>)',
    );
    expect(shapeOf('utf8 and h264 are fine, base64 too')).toBe('utf<n> and h<n> are fine, base<n> too');
  });
});

describe('whatever is put into a message', () => {
  const word = fc.constantFrom('open', 'failed', 'for', 'user', 'because', 'codec', 'of', 'queue');
  const hex = fc.stringMatching(/^[0-9a-f]{32}$/).filter((text) => /\d/.test(text) && /[a-f]/.test(text));
  const variable = fc.oneof(
    fc.uuid(),
    hex,
    fc.integer().map(String),
    fc.ipV4(),
    fc.tuple(fc.ipV4(), fc.nat(65_535)).map(([host, port]) => `${host}:${port}`),
    fc.stringMatching(/^[a-z ]{0,20}$/).map((text) => `"${text}"`),
    fc
      .array(fc.stringMatching(/^[a-z0-9]{1,8}$/), { minLength: 2, maxLength: 5 })
      .map((parts) => `/${parts.join('/')}`),
    fc
      .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString()),
  );
  const kindOf = (text: string): string => shapeOf(`at ${text} it`);

  test('of one kind, the fingerprint stays', () => {
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1 }),
        variable,
        variable,
        fc.array(word),
        (before, a, b, after) => {
          fc.pre(kindOf(a) === kindOf(b));
          const message = (value: string) => [...before, value, ...after].join(' ');
          expect(of(message(a))).toBe(of(message(b)));
        },
      ),
    );
  });

  test('nothing of it is left in the shape', () => {
    fc.assert(
      fc.property(variable, (value) => {
        expect(shapeOf(`failed for ${value} again`)).toMatch(/^failed for <\w+> again$/);
      }),
    );
  });

  test('a shape has a bound and is its own shape, and long texts cost little', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 3_000, unit: 'binary' }), (message) => {
        expect(shapeOf(message).length).toBeLessThanOrEqual(600);
        expect(of(message)).toMatch(/^[0-9a-f]{16}$/);
      }),
    );
    const before = cpuMs();
    for (const dump of [
      '/a'.repeat(50_000),
      '"'.repeat(100_000),
      '1'.repeat(100_000),
      'a:'.repeat(50_000),
      'a.'.repeat(50_000),
      '1,'.repeat(50_000),
      `${'a@'.repeat(9_000)}`,
    ])
      shapeOf(dump);
    // A step that went over the text again for each of its characters would take hundreds of times as much.
    expect(cpuMs() - before).toBeLessThan(2_000);
  });
});
