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
	"path/filepath"
	"slices"
	"strings"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

// pictureExtensions are the endings of files that are taken for pictures; what a file really is, its first bytes say.
var pictureExtensions = []string{".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

// isPicture reports whether a file's name is that of a picture.
func isPicture(name string) bool {
	return slices.Contains(pictureExtensions, strings.ToLower(filepath.Ext(name)))
}

const (
	maxPixels = 1 << 27   // of a picture: as PIL, refuse what only a decompression bomb claims
	maxFile   = 512 << 20 // bytes of a picture's file
)

// readPicture decodes a picture file.
func readPicture(path string) (image.Image, error) {
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
		return nil, fmt.Errorf("a picture file of more than %d MiB", maxFile>>20)
	}
	return decodePicture(data)
}

// decodePicture decodes JPEG, PNG, GIF (its first frame), BMP, TIFF or WebP.
func decodePicture(data []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("no picture of a known format: %w", err)
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return nil, fmt.Errorf("a picture of %d x %d pixels: the bound is %d in all", c.Width, c.Height, maxPixels)
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
