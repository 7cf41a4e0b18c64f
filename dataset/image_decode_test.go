package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/turbojpeg"
	"github.com/noether-ml/noether/tensor"
)

// img decodes a file of testdata/images.
func img(t testing.TB, name string) image.Image {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := readImage(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// differences returns the largest and the mean absolute difference of two images, in levels: units
// of 1/255.
func differences(t testing.TB, got, want []float32) (worst, mean float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, v := range got {
		d := float64(max(v-want[i], want[i]-v)) * 255
		worst = max(worst, d)
		mean += d / float64(len(got))
	}
	return worst, mean
}

// TestFrameEqualsTorchvision compares images that a Frame resizes and crops with those of
// torchvision on a PIL image, which testdata/images.py has stored. Frame{} keeps the size and the
// channels.
func TestFrameEqualsTorchvision(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name  string
		Frame Frame
	}
	data, err := os.ReadFile("testdata/images/framing.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	scene := img(t, "scene.png")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			want, err := Frame{}.Image(img(t, "framed-"+c.Name+".png"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Frame.Image(scene)
			if err != nil {
				t.Fatal(err)
			}
			if worst, _ := differences(t, got.Data, want.Data); worst != 0 {
				t.Errorf("the image differs from PIL's by %v levels", worst)
			}
		})
	}
}

// tensorFile reads an image from an array file.
func tensorFile(t testing.TB, path string) tensor.Tensor {
	t.Helper()
	file, err := openArchive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := file.open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	values := tensor.New(a.shape...)
	raw, err := a.read(0, values.Len())
	if err != nil {
		t.Fatal(err)
	}
	for i := range values.Data {
		values.Data[i] = float32(a.value(raw[i*a.bytes:]))
	}
	return values
}

// TestFrameOfTensorEqualsTorch compares resized tensors with those of torchvision on a tensor, also
// from testdata/images.py.
func TestFrameOfTensorEqualsTorch(t *testing.T) {
	t.Parallel()
	scene, err := Frame{}.Image(img(t, "scene.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"bilinear", "bicubic"} {
		for _, size := range []int{17, 71} {
			want := tensorFile(t, fmt.Sprintf("testdata/images/tensor-%s-%d.npy", mode, size))
			got, err := Frame{Resize: size, Interpolation: mode}.Tensor(scene)
			if err != nil {
				t.Fatal(err)
			}
			if worst, _ := differences(t, got.Data, want.Data); worst > 0.001 {
				t.Errorf("%s to %d: differs by %v levels", mode, size, worst)
			}
		}
	}
}

// TestDecodeEqualsPIL checks that all formats equal PIL's bit by bit, except JPEGs that Go's
// decoder reads: its inverse cosine transform rounds differently in a few places.
func TestDecodeEqualsPIL(t *testing.T) {
	t.Parallel()
	references, err := filepath.Glob("testdata/images/*.rgb.png")
	if err != nil || len(references) < 30 {
		t.Fatalf("%d images, %v", len(references), err)
	}
	for _, path := range references {
		name := strings.TrimSuffix(filepath.Base(path), ".rgb.png")
		t.Run(name, func(t *testing.T) {
			want, err := Frame{Channels: 3}.Image(img(t, name+".rgb.png"))
			if err != nil {
				t.Fatal(err)
			}
			decoded := img(t, name)
			check := func(img image.Image) {
				// Largest and mean difference allowed, in units of 1/255.
				bound, mostMean := 0.0, 0.0
				// A C library or the decoder of PNG gives an RGB image with the pixels of PIL.
				switch _, exact := img.(*turbojpeg.RGB); {
				case name == "ycck.jpg": // CMYK as luminance, chrominance and black, which Go rounds down in RGB
					bound, mostMean = 2, 0.25
				case strings.HasSuffix(name, ".jpg") && !exact:
					bound, mostMean = 3, 0.1
				}
				got, err := Frame{Channels: 3}.Image(img)
				if err != nil {
					t.Fatal(err)
				}
				if worst, mean := differences(t, got.Data, want.Data); worst > bound+0.01 || mean > mostMean+0.001 {
					t.Errorf("%T differs by %v levels, %v on average", img, worst, mean)
				}
			}
			check(decoded)
			if _, ok := decoded.(*turbojpeg.RGB); ok {
				check(decodeWithGo(t, name))
			}
		})
	}
}

// TestFirstFrameDamaged checks that a cut animation, or one whose frame is outside its canvas, is
// an error.
func TestFirstFrameDamaged(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/images/animated.webp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeImage(data[:60]); err == nil || !strings.Contains(err.Error(), "no whole frame") {
		t.Errorf("a cut animation: %v", err)
	}
	at := bytes.Index(data, []byte("ANMF"))
	data[at+8] = 5 // ten pixels to the right
	if _, err := decodeImage(data); err == nil || !strings.Contains(err.Error(), "does not fit the canvas") {
		t.Errorf("a frame outside its canvas: %v", err)
	}
}

// decodeWithGo decodes a file of testdata/images as readImage does where neither libjpeg-turbo nor
// libwebp is installed.
func decodeWithGo(t *testing.T, name string) image.Image {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	if frame, animated, err := firstWebPFrame(data); err != nil {
		t.Fatal(err)
	} else if animated {
		data = frame.still
	}
	img, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if format == "webp" {
		img = fromWebP(img)
	}
	return img
}

// TestOtherImageFormats checks that a file which is not what its name says is named.
func TestOtherImageFormats(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]string{
		"": "the file is empty", strings.Repeat("\x00", 90): "90 zeros",
		"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00": "AVIF", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00": "HEIC", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00": "video (MP4)",
		"\x00\x00\x00\x0cjP  \r\n\x87\n\x00": "JPEG 2000", "\xff\x0a\x10\x10": "JPEG XL", "II+\x00\x08\x00\x00\x00": "BigTIFF", "P6\n2 2\n255\n": "PPM",
		"\x00\x00\x01\x00\x01\x00": "ICO", "qoif\x00\x00\x00\x02": "QOI", strings.Repeat("\x00", 128) + "DICM\x02": "DICOM",
		"\x93NUMPY\x01\x00": "NumPy", "PK\x03\x04\x14\x00": "ZIP", "version https://git-lfs.github.com/spec/v1\n": "Git LFS", "\n<!DOCTYPE html>": "a web page",
		"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x10" + strings.Repeat("\x00", 40): "header of the bmp file: bmp: unsupported",
		"\xff\xd8\xff\xc9\x00\x0b\x08\x00\x02\x00\x02\x01\x01\x11\x00":                                                                                "header of the jpeg file: unsupported JPEG feature",
		"<svg xmlns='http://www.w3.org/2000/svg'/>":                                                                                                   "SVG", `{"error": "not found"}`: "JSON", "GARBAGE!": `starts with "GARBAGE!"`,
	} {
		img, err := decodeImage([]byte(start))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: image %v, error %v, want one line that names %s", start, img, err, want)
		}
	}
}
