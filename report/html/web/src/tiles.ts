// Images of samples, cut out of the image of their sheet.

import type { SampleSheet } from './data';

const sheets = new Map<SampleSheet, Promise<HTMLImageElement>>();
const cut = new Map<string, Promise<string>>();

/** Whether a sheet has images. */
export const hasImages = (sheet: SampleSheet) => Boolean(sheet.tile && sheet.image);

/** The image of a sample as a data URL: as it is (column 0), or under a value of the parameter. */
export function tile(sheet: SampleSheet, line: number, column: number): Promise<string> {
  const key = `${sheet.data}\0${sheet.transform}\0${line}\0${column}`;
  let url = cut.get(key);
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
    cut.set(key, url);
  }
  return url;
}

function whole(sheet: SampleSheet): Promise<HTMLImageElement> {
  let image = sheets.get(sheet);
  if (!image) {
    const loading = new Image();
    loading.src = `data:${sheet.type};base64,${sheet.image}`;
    image = loading.decode().then(() => loading);
    sheets.set(sheet, image);
  }
  return image;
}
