// Loads the data: from the page itself, which is then one file that works offline, or from the server
// of the page.

import type { Packed } from './data';

/** Loads the data that a page's element names or holds. */
export async function load(holder: HTMLElement): Promise<Packed> {
  const address = holder.dataset.source;
  if (!address) return unzip(holder.textContent ?? '');
  const answer = await fetch(address, { headers: { accept: 'application/json' } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} ${answer.statusText}`);
  return (await answer.json()) as Packed;
}

// unzip reads JSON that was compressed by gzip and written in base64.
async function unzip(text: string): Promise<Packed> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(stream).json()) as Packed;
}
