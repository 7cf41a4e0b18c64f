// Sheets of tiles: single images that hold many small images (tiles) of one size in a grid of lines
// and columns. Each tile is cut out when it is first shown.

/**
 * A sheet of tiles in a page. right and down are the distances from a tile to the next, in pixels.
 */
export interface TileSheet {
  tile?: { width: number; height: number; right: number; down: number };
  type: string; // media type
  image?: string; // base64
}

const sheets = new WeakMap<TileSheet, Promise<HTMLImageElement>>();
const cut = new WeakMap<TileSheet, Map<string, Promise<string>>>();

export const hasImages = (sheet: TileSheet) => Boolean(sheet.tile && sheet.image);

/** The tile at a line and a column, both counted from 0, as a data URL of a PNG image. */
export function tile(sheet: TileSheet, line: number, column: number): Promise<string> {
  const urls = cut.get(sheet) ?? new Map<string, Promise<string>>();
  cut.set(sheet, urls);
  const key = `${line} ${column}`;
  let url = urls.get(key);
  if (!url) {
    url = whole(sheet).then((image) => {
      const { width, height, right, down } = sheet.tile!;
      const canvas = document.createElement('canvas');
      canvas.width = width;
      canvas.height = height;
      canvas
        .getContext('2d')!
        .drawImage(image, column * right, line * down, width, height, 0, 0, width, height);
      return canvas.toDataURL('image/png');
    });
    urls.set(key, url);
  }
  return url;
}

/** The decoded image of a whole sheet. */
function whole(sheet: TileSheet): Promise<HTMLImageElement> {
  let image = sheets.get(sheet);
  if (!image) {
    const loading = new Image();
    loading.src = `data:${sheet.type};base64,${sheet.image}`;
    image = loading.decode().then(() => loading);
    sheets.set(sheet, image);
  }
  return image;
}
