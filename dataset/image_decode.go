package dataset

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // the formats that image.Decode is to know
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"

	"github.com/noether-ml/noether/internal/chroma"
)

// imageExtensions are the endings of files that are taken for images; what a file really is, its
// first bytes say.
var imageExtensions = []string{".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

// Bounds that no honest image meets and a decompression bomb does.
const (
	maxPixels = 1 << 27   // of an image
	anyPixels = 1 << 24   // up to here however short the file is
	perByte   = 1 << 14   // pixels that a byte may stand for beyond that: more than deflate can pack
	maxFile   = 512 << 20 // bytes of a file
)

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
		return nil, fmt.Errorf("an image file of more than %d MiB", maxFile>>20)
	}
	return decodeImage(data)
}

// decodeImage decodes JPEG, PNG, GIF (its first frame), BMP, TIFF or WebP.
func decodeImage(data []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("no image of a known format: %w", err)
	}
	if bound := min(maxPixels, max(anyPixels, perByte*len(data))); c.Width <= 0 || c.Height <= 0 || c.Width > bound/c.Height {
		return nil, fmt.Errorf("an image of %d x %d pixels in %d bytes: the bound is %d pixels", c.Width, c.Height, len(data), bound)
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

// webpVersion counts the changes of what fromWebP makes of a file. It enters the fingerprint of
// folders with such files.
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
