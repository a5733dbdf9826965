/** base64 of zlib -> bytes or text, never more of them than asked for: a record may be hostile. */

import { unzlibSync } from 'fflate';

import { Problem } from './decode';

export function bytes(data: string, most: number): Uint8Array {
  const packed = decoded(data);
  let out: Uint8Array;
  try {
    // The library fills the array that it is given and no more; deflate makes at most 1,032 bytes of one.
    out = unzlibSync(packed, { out: new Uint8Array(Math.min(most + 1, 1032 * packed.length)) });
  } catch (error) {
    throw damaged(error instanceof Error ? error.message : String(error));
  }
  if (out.length > most) {
    throw new Problem(`the packed data holds more than ${most} bytes`);
  }
  if (adler(out) !== new DataView(packed.buffer).getUint32(packed.length - 4)) {
    throw damaged('its checksum is another one'); // the library does not look
  }
  return out;
}

export function text(data: string, most = 4_000_000): string {
  return new TextDecoder().decode(bytes(data, most));
}

function damaged(why: string): Problem {
  return new Problem(`the packed data can't be read: ${why}`);
}

function decoded(data: string): Uint8Array {
  let raw: string;
  try {
    raw = atob(data);
  } catch {
    throw new Problem('the packed data is no base64');
  }
  if (raw.length < 8) {
    throw damaged('it is too short');
  }
  return Uint8Array.from(raw, letter => letter.charCodeAt(0));
}

/** RFC 1950's checksum; 5,552 bytes at a time stay below 2 ** 32. */
function adler(data: Uint8Array): number {
  let [a, b] = [1, 0];
  for (let i = 0; i < data.length; ) {
    for (const end = Math.min(i + 5552, data.length); i < end; i++) {
      a += data[i] as number;
      b += a;
    }
    a %= 65521;
    b %= 65521;
  }
  return b * 65536 + a;
}
