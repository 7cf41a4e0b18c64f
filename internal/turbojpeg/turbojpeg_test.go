package turbojpeg

import (
	"bytes"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
)

const images = "../../dataset/testdata/images"

// needLibrary skips a test if libjpeg-turbo is not installed. The test fails instead where
// NOETHER_TESTDATA is set, since such a machine has all that tests need.
func needLibrary(t testing.TB) {
	t.Helper()
	_, err := Find()
	testdata.NeedLibrary(t, "libjpeg-turbo", Hint(), err)
}

// read returns the content of a file in images, and the size of its image.
func read(t testing.TB, name string) (data []byte, size image.Config) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(images, name))
	if err != nil {
		t.Fatal(err)
	}
	if size, _, err = image.DecodeConfig(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return data, size
}

// TestEqualsPIL checks that Decode returns exactly the pixels of PIL (Pillow), which also uses
// libjpeg-turbo. NAME.rgb.png holds the pixels that PIL decodes from NAME.
func TestEqualsPIL(t *testing.T) {
	t.Parallel()
	needLibrary(t)
	paths, err := filepath.Glob(filepath.Join(images, "*.jpg"))
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d images, %v", len(paths), err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		data, size := read(t, name)
		got, ok := Decode(data, size.Width, size.Height)
		if !ok {
			t.Errorf("%s is not decoded", name)
			continue
		}
		wantData, _ := read(t, name+".rgb.png")
		want, _, err := image.Decode(bytes.NewReader(wantData))
		if err != nil {
			t.Fatal(err)
		}
		if got.Bounds() != want.Bounds() {
			t.Fatalf("%s: bounds %v, want %v", name, got.Bounds(), want.Bounds())
		}
		for y := range size.Height {
			for x := range size.Width {
				if a, b := color.RGBAModel.Convert(got.At(x, y)), color.RGBAModel.Convert(want.At(x, y)); a != b {
					t.Fatalf("%s at %d, %d: %v, want %v", name, x, y, a, b)
				}
			}
		}
	}
}

// TestNotDecoded checks that Decode returns no image for damaged data and for images of another
// size than the given one.
func TestNotDecoded(t *testing.T) {
	t.Parallel()
	needLibrary(t)
	data, size := read(t, "420.jpg")
	// The marker SOS, which precedes the compressed data.
	scan := bytes.Index(data, []byte("\xff\xda"))
	damaged := slices.Clone(data)
	for i := scan + 40; i < scan+80; i++ {
		damaged[i] = 0xff
	}
	for name, c := range map[string]struct {
		data          []byte
		width, height int
	}{
		"no data":          {nil, size.Width, size.Height},
		"not a JPEG":       {[]byte(strings.Repeat("x", 100)), size.Width, size.Height},
		"truncated scan":   {data[:scan+len(data[scan:])/2], size.Width, size.Height},
		"truncated header": {data[:20], size.Width, size.Height},
		"damaged":          {damaged, size.Width, size.Height},
		"other width":      {data, size.Width + 1, size.Height},
		"other height":     {data, size.Width, size.Height - 1},
		"size zero":        {data, 0, 0},
		"negative size":    {data, -1, -1},
	} {
		if _, ok := Decode(c.data, c.width, c.height); ok {
			t.Errorf("%s: Decode returns an image, want none", name)
		}
	}
	if _, ok := Decode(data, size.Width, size.Height); !ok {
		t.Error("the undamaged image is not decoded afterwards")
	}
}

// TestConcurrentDecode checks that goroutines that decode different images at the same time each
// get the right pixels, and that no more decoders are kept for reuse than there were goroutines.
func TestConcurrentDecode(t *testing.T) {
	t.Parallel()
	needLibrary(t)
	names := []string{"420.jpg", "444.jpg", "grey.jpg", "progressive.jpg"}
	var wait sync.WaitGroup
	for i := range 8 {
		name := names[i%len(names)]
		data, size := read(t, name)
		want, ok := Decode(data, size.Width, size.Height)
		if !ok {
			t.Fatal(name)
		}
		wait.Go(func() {
			for range 50 {
				if got, ok := Decode(data, size.Width, size.Height); !ok || !bytes.Equal(pixels(got), pixels(want)) {
					t.Errorf("%s differs", name)
					return
				}
			}
		})
	}
	wait.Wait()
	if idle := len(loaded().idle); idle > 8 {
		t.Errorf("%d decoders are kept after 8 goroutines, want 8 at most", idle)
	}
}

// pixels returns the pixels of an image that Decode has returned.
func pixels(img image.Image) []uint8 {
	if gray, ok := img.(*image.Gray); ok {
		return gray.Pix
	}
	return img.(*RGB).Pix
}

func TestRGB(t *testing.T) {
	t.Parallel()
	m := &RGB{Pix: []uint8{1, 2, 3, 4, 5, 6}, Rect: image.Rect(0, 0, 1, 2)}
	for at, want := range map[image.Point]color.RGBA{{X: 0, Y: 0}: {1, 2, 3, 255}, {X: 0, Y: 1}: {4, 5, 6, 255}, {X: 1, Y: 0}: {}, {X: 0, Y: -1}: {}} {
		if got := m.At(at.X, at.Y); got != want {
			t.Errorf("%v: %v, want %v", at, got, want)
		}
	}
}

// FuzzDecode checks that no data crash the library.
func FuzzDecode(f *testing.F) {
	needLibrary(f)
	for _, name := range []string{"420.jpg", "440-narrow.jpg", "grey.jpg", "progressive.jpg", "cmyk.jpg", "tiny-1x1.jpg"} {
		data, _ := read(f, name)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil || format != "jpeg" || c.Width > 1<<20/max(1, c.Height) {
			return
		}
		if img, ok := Decode(data, c.Width, c.Height); ok && img.Bounds() != image.Rect(0, 0, c.Width, c.Height) {
			t.Errorf("bounds %v, want %d x %d", img.Bounds(), c.Width, c.Height)
		}
	})
}
