// Saving what is on the page: charts as SVG and PNG, tables as CSV. Everything is made here;
// nothing is sent anywhere.

/** What can be written as SVG: a chart, a drawing, or cards of samples. */
export interface Drawable {
  toSVG(): Promise<string>;
  finalize(): void; // frees what the drawing holds, as in Vega
}

/** The chart as a complete SVG file: without CSS variables, on the page's background. */
export async function svgOf(view: Drawable): Promise<string> {
  return withBackground(withoutVariables(await view.toSVG()));
}

export async function saveSVG(view: Drawable, name: string): Promise<void> {
  save(new Blob([await svgOf(view)], { type: 'image/svg+xml' }), `${name}.svg`);
}

const density = 2; // pixels of a PNG for each CSS pixel, for print and high-resolution screens

export async function savePNG(view: Drawable, name: string): Promise<void> {
  save(await pngOf(view), `${name}.png`);
}

/** The chart as a PNG. */
export async function pngOf(view: Drawable): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await svgOf(view))}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * density;
  canvas.height = image.height * density;
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error('the browser made no PNG'))),
      'image/png',
    ),
  );
}

// withoutVariables replaces the variables of the style sheet by their values.
function withoutVariables(svg: string): string {
  const style = getComputedStyle(document.documentElement);
  return svg.replace(/var\((--[a-z0-9-]+)\)/g, (_, name: string) =>
    style.getPropertyValue(name).trim(),
  );
}

// withBackground adds the page's background behind a drawing.
function withBackground(svg: string): string {
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--ground').trim();
  return svg.replace(/^(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${colour}"/>`);
}

/** Saves text as a CSV file. */
export function saveText(text: string, name: string): void {
  save(new Blob([text], { type: 'text/csv;charset=utf-8' }), name);
}

function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // A minute later the browser has read the content, which can then be freed.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A file name from some texts: other characters than letters, digits and dots become dashes. */
export function fileName(...parts: string[]): string {
  return (
    parts
      .join(' ')
      .normalize('NFKD')
      .replace(/[^A-Za-z0-9.]+/g, '-')
      .replace(/\.{2,}/g, '.')
      .replace(/^[-.]+|[-.]+$/g, '')
      .slice(0, 80) || 'noether'
  );
}

/** Puts text on the clipboard. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // some browsers deny the clipboard to pages opened from a file
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
