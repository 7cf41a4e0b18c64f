package dataset

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // the formats that image.Decode recognises
	_ "image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"github.com/noether-ml/noether/internal/chroma"
	"github.com/noether-ml/noether/internal/turbojpeg"
	"github.com/noether-ml/noether/internal/webp"
	"github.com/noether-ml/noether/tensor"
)

// imageExtensions are the extensions of image files. The format itself is detected from the first
// bytes.
var imageExtensions = []string{".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}

// IsImage reports whether a file name has the extension of an image that OpenFolder reads.
func IsImage(name string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(filepath.Ext(name)))
}

// otherImageExtensions are the extensions of images in formats that are not read.
var otherImageExtensions = []string{".arw", ".avif", ".cr2", ".cr3", ".dcm", ".dds", ".dng", ".eps", ".exr", ".hdr", ".heic", ".heif", ".ico", ".j2k", ".jfif", ".jp2",
	".jxl", ".nef", ".nii", ".pbm", ".pcx", ".pfm", ".pgm", ".pnm", ".ppm", ".psd", ".qoi", ".ras", ".raw", ".svg", ".tga", ".xbm", ".xpm"}

// Bounds on image files. All but rowPixels reject decompression bombs.
const (
	maxPixels = 1 << 27   // of an image
	anyPixels = 1 << 24   // of an image that is accepted whatever the length of its file
	maxFile   = 512 << 20 // bytes of a file
	rowPixels = 1 << 22   // PNG images of more pixels than this are decoded in strips of rows

	// perByte is the accepted number of pixels per byte of a file, for images of more than
	// anyPixels pixels. Deflate, which shrinks data at most 1,032 times, has at most 8,256 pixels
	// of one bit in a byte.
	perByte = 1 << 14

	// maxScans and maxScanned are the largest numbers of scans of a JPEG, and of scans times pixels:
	// a scan of a few bytes changes all pixels, and decoding takes time for each.
	maxScans   = 500
	maxScanned = 1 << 31
)

// decoding limits the total number of pixels that goroutines decode at the same time to maxPixels.
// Without it, the memory for images before they are resized would grow with the number of cores.
var decoding = semaphore.NewWeighted(maxPixels)

// frameFile decodes an image file and brings the image to a frame.
func frameFile(ctx context.Context, path string, frame Frame) (tensor.Tensor, error) {
	f, size, err := openSized(path)
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer f.Close()
	return frameEncoded(ctx, f, size, frame)
}

// frameEncoded decodes an image file of size bytes and brings the image to a frame. While it
// decodes, it holds the number of pixels in memory from the semaphore decoding. Large PNG images
// are decoded in strips of rows.
func frameEncoded(ctx context.Context, r io.ReadSeeker, size int64, frame Frame) (tensor.Tensor, error) {
	if size > maxFile {
		return tensor.Tensor{}, errFileSize
	}
	c, format, err := image.DecodeConfig(r)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		c = image.Config{Width: 0, Height: 1} // no pixels; readImage below returns the error
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return tensor.Tensor{}, err
	}
	if format == "png" && isLarge(c, size) {
		// A strip of about stripPixels (2^19) pixels, or one row, before and after decoding.
		pixels := int64(min(2*max(stripPixels, c.Width), maxPixels))
		if err := decoding.Acquire(ctx, pixels); err != nil {
			return tensor.Tensor{}, err
		}
		t, ok, err := frame.fromPNG(r, c.Height, c.Width)
		decoding.Release(pixels)
		if ok || err != nil {
			return t, err
		}
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return tensor.Tensor{}, err
		}
	}
	pixels := int64(min(c.Width, maxPixels/c.Height)) * int64(c.Height)
	if err := decoding.Acquire(ctx, pixels); err != nil {
		return tensor.Tensor{}, err
	}
	defer decoding.Release(pixels)
	img, err := readImage(r)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return frame.Image(img)
}

// isLarge reports whether an image in a file of size bytes has more than rowPixels pixels, and is
// within the bounds maxPixels, maxFile and perByte.
func isLarge(c image.Config, size int64) bool {
	return c.Width > 0 && c.Width <= maxPixels/c.Height && c.Width*c.Height > rowPixels && size <= maxFile && int64(c.Width*c.Height) <= perByte*size
}

// fromPNG brings a PNG image of h x w pixels to the frame, strip by strip. ok is false for an
// interlaced image, whose rows are not in order: it is not decoded.
func (f Frame) fromPNG(file io.Reader, h, w int) (t tensor.Tensor, ok bool, err error) {
	images, ok, err := pngRows(file, stripPixels)
	if err == nil && ok {
		t, err = f.imageStrips(images, h, w)
	}
	if err != nil {
		return t, ok, fmt.Errorf("damaged png: %w", err)
	}
	return t, ok, nil
}

// asBadSample returns an error in reading the sample of the given name as a *BadSample, and nil for
// nil. Once the context is done it returns the error of the context. The error of a file does not
// repeat its path (withoutPath), which the name holds.
func asBadSample(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &BadSample{Name: name, Err: cmp.Or(withoutPath(err), err)}
	}
	return nil
}

var errFileSize = fmt.Errorf("the image file is larger than %d MiB", maxFile>>20)

// readImage decodes an image of at most maxFile bytes.
func readImage(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errFileSize
	}
	return decodeImage(data)
}

// decodeImage decodes JPEG, PNG, BMP, TIFF, and the first frame of GIF and WebP. An image outside
// the bounds on pixels is an error.
func decodeImage(data []byte) (image.Image, error) {
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case errors.Is(err, image.ErrFormat):
		return nil, unreadFormat(data)
	case err != nil:
		return nil, cmp.Or(refusedTIFF(data), fmt.Errorf("the header of the %s file: %w: if other programs read it, convert it to PNG", format, err))
	}
	if bound := min(maxPixels, max(anyPixels, perByte*len(data))); c.Width <= 0 || c.Height <= 0 || c.Width > bound/c.Height {
		return nil, fmt.Errorf("the image has %d x %d pixels in %d bytes: the limit is %d pixels", c.Width, c.Height, len(data), bound)
	}
	if format == "tiff" {
		if err := checkTIFF(tiffTags(data), c); err != nil {
			return nil, err
		}
	}
	img, err := decodePixels(data, format, c)
	if err != nil {
		return nil, fmt.Errorf("damaged %s: %w", format, err)
	}
	return img, nil
}

// imageFormats are the first bytes of files that are not read, after the bytes that are skipped,
// and what such a file is.
var imageFormats = []struct {
	skipped     int
	start, name string
}{
	{4, "ftypavif", "AVIF"}, {4, "ftypavis", "AVIF"}, {4, "ftyphei", "HEIC"}, {4, "ftyphev", "HEIC"}, {4, "ftypmif1", "HEIF"}, {4, "ftypmsf1", "HEIF"},
	{4, "ftyp", "video (MP4)"}, {0, "\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"}, {0, "\xff\x4f\xff\x51", "JPEG 2000"},
	{0, "\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"}, {0, "\xff\x0a", "JPEG XL"}, {0, "II+\x00", "BigTIFF"}, {0, "MM\x00+", "BigTIFF"},
	{0, "P1", "PBM"}, {0, "P2", "PGM"}, {0, "P3", "PPM"}, {0, "P4", "PBM"}, {0, "P5", "PGM"}, {0, "P6", "PPM"}, {0, "Pf", "PFM"}, {0, "PF", "PFM"},
	{0, "\x00\x00\x01\x00", "ICO"}, {0, "DDS ", "DDS"}, {0, "qoif", "QOI"}, {0, "8BPS", "PSD"}, {0, "v/1\x01", "OpenEXR"}, {0, "#?RADIANCE", "Radiance HDR"},
	{0, "\x01\xda", "SGI"}, {128, "DICM", "DICOM"}, {0, "\x93NUMPY", "an array of NumPy"}, {0, "\x89HDF\r\n", "HDF5"}, {0, "PK\x03\x04", "a ZIP archive"},
	{0, "\x1f\x8b", "gzip"}, {0, "%PDF", "PDF"}, {0, "version https://git-lfs", "a pointer of Git LFS (git lfs pull)"},
	{0, "<!DOCTYPE", "a web page"}, {0, "<html", "a web page"}, {0, "<HTML", "a web page"}, {0, "<svg", "SVG"}, {0, "<?xml", "XML"}, {0, "{", "JSON"},
}

// unreadFormat returns an error that says what a file is whose image format is not known.
func unreadFormat(data []byte) error {
	const readable = "JPEG, PNG, BMP, TIFF, GIF and WebP are read"
	if len(data) == 0 {
		return errors.New("the file is empty")
	}
	if len(bytes.Trim(data, "\x00")) == 0 {
		return fmt.Errorf("the file holds %d zeros: was it copied completely?", len(data))
	}
	text := bytes.TrimLeft(data, " \r\n\t\xef\xbb\xbf")
	for _, f := range imageFormats {
		if f.skipped < len(data) && bytes.HasPrefix(data[f.skipped:], []byte(f.start)) || f.skipped == 0 && bytes.HasPrefix(text, []byte(f.start)) {
			return fmt.Errorf("the file is %s, which is not read: %s", f.name, readable)
		}
	}
	return fmt.Errorf("unknown image format, which starts with %.8q: %s", data, readable)
}

// decodePixels decodes an image of a format and header that image.DecodeConfig returns.
func decodePixels(data []byte, format string, c image.Config) (image.Image, error) {
	switch format {
	case "jpeg":
		if scans := bytes.Count(data, []byte("\xff\xda")); scans > min(maxScans, maxScanned/(c.Width*c.Height)) {
			return nil, fmt.Errorf("%d scans of %d x %d pixels: the limit is %d", scans, c.Width, c.Height, min(maxScans, maxScanned/(c.Width*c.Height)))
		}
		if img, ok := turbojpeg.Decode(data, c.Width, c.Height); ok {
			return img, nil
		}
	case "png":
		if img, ok := decodePNG(data); ok {
			return img, nil
		}
	case "gif":
		return decodeGIF(data)
	case "tiff":
		return decodeTIFF(data, tiffTags(data))
	case "webp":
		frame, animated, err := firstWebPFrame(data)
		if err != nil {
			return nil, err
		}
		if animated {
			img, err := decodeImage(frame.still)
			if err != nil {
				return nil, err
			}
			return frame.onCanvas(img, c.Width, c.Height)
		}
		if pixels, ok := webp.Decode(data, c.Width, c.Height); ok {
			return &turbojpeg.RGB{Pix: pixels, Rect: image.Rect(0, 0, c.Width, c.Height)}, nil
		}
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err == nil && format == "webp" {
		img = fromWebP(img)
	}
	return img, err
}

// webpVersion is increased when decoding is changed to return other pixels. It is part of the
// fingerprint of folders with WebP files.
const webpVersion = 2

// fromWebP corrects a decoded WebP image. The decoder returns lossy images as full-range YCbCr,
// while WebP uses the limited range.
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
	return &turbojpeg.RGB{Pix: chroma.WebP.RGB(lossy), Rect: image.Rect(0, 0, lossy.Bounds().Dx(), lossy.Bounds().Dy())}
}
