package dataset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	_ "image/gif" // the formats that image.Decode recognises
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"github.com/noether-ml/noether/internal/chroma"
)

// imageExtensions are the extensions of image files. The format itself is detected from the first
// bytes.
var imageExtensions = []string{".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

// Bounds that reject decompression bombs.
const (
	maxPixels = 1 << 27   // of an image
	anyPixels = 1 << 24   // always accepted, however short the file is
	perByte   = 1 << 14   // pixels per byte that are accepted above anyPixels: more than deflate can compress
	maxFile   = 512 << 20 // bytes of a file
)

// decoding bounds the pixels of the images that goroutines decode at the same time to those of the
// largest image. Without it, the memory of images before they are resized would grow with the cores.
var decoding = semaphore.NewWeighted(maxPixels)

// withImage decodes an image file and calls use. Until use returns, the image counts in decoding.
func withImage(ctx context.Context, path string, use func(image.Image) error) error {
	pixels, err := countPixels(path)
	if err != nil {
		return err
	}
	if err := decoding.Acquire(ctx, pixels); err != nil {
		return err
	}
	defer decoding.Release(pixels)
	img, err := readImage(path)
	if err != nil {
		return err
	}
	return use(img)
}

// withEncoded decodes an image in memory and calls use. Until use returns, the image counts in
// decoding.
func withEncoded(ctx context.Context, data []byte, use func(image.Image) error) error {
	pixels := declaredPixels(bytes.NewReader(data))
	if err := decoding.Acquire(ctx, pixels); err != nil {
		return err
	}
	defer decoding.Release(pixels)
	img, err := decodeImage(data)
	if err != nil {
		return err
	}
	return use(img)
}

// asBadSample returns the error of reading one sample as a *BadSample, or the context's error once it
// is done.
func asBadSample(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &BadSample{Name: name, Err: cmp.Or(withoutPath(err), err)}
	}
	return nil
}

// countPixels returns the pixels that the header of an image file declares, at most maxPixels; 0 for
// a file that is not an image.
func countPixels(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return declaredPixels(f), nil
}

// declaredPixels returns the pixels that the header of an image declares, at most maxPixels; 0 if it
// is not an image.
func declaredPixels(r io.Reader) int64 {
	c, _, err := image.DecodeConfig(r)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return 0 // reading the image returns the error
	}
	return int64(min(c.Width, maxPixels/c.Height)) * int64(c.Height)
}

// readImage decodes an image file.
func readImage(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the image file is larger than %d MiB", maxFile>>20)
	}
	return decodeImage(data)
}

// decodeImage decodes JPEG, PNG, GIF (the first frame), BMP, TIFF or WebP.
func decodeImage(data []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unknown image format: %w", err)
	}
	if bound := min(maxPixels, max(anyPixels, perByte*len(data))); c.Width <= 0 || c.Height <= 0 || c.Width > bound/c.Height {
		return nil, fmt.Errorf("the image has %d x %d pixels in %d bytes: the limit is %d pixels", c.Width, c.Height, len(data), bound)
	}
	img, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("damaged %s: %w", format, err)
	}
	if format == "webp" {
		img = fromWebP(img)
	}
	return img, nil
}

// webpVersion changes when fromWebP returns different pixels. It is part of the fingerprint of
// folders with WebP files.
const webpVersion = 2

// fromWebP corrects a decoded WebP picture: the decoder hands out lossy ones as if their luma
// spanned all 8 bits.
func fromWebP(img image.Image) image.Image {
	var lossy *image.YCbCr
	switch img := img.(type) {
	case *image.YCbCr:
		lossy = img
	case *image.NYCbCrA:
		lossy = &img.YCbCr
	default:
		return img
	}
	pix := chroma.WebP.RGB(lossy)
	out := image.NewNRGBA(image.Rect(0, 0, lossy.Bounds().Dx(), lossy.Bounds().Dy()))
	for i := range len(pix) / 3 {
		copy(out.Pix[i*4:i*4+3], pix[i*3:])
		out.Pix[i*4+3] = 255
	}
	return out
}
