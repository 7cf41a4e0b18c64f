// Reads the data of the report from the page itself, an HTML file that works offline.

import type { Packed } from './data';

/** Returns the data of a text: JSON, compressed by gzip and encoded in base64. */
export async function unzip(text: string): Promise<Packed> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as Packed;
}
