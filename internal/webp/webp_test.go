package webp

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/noether-ml/noether/internal/testdata"
)

const images = "../../dataset/testdata/images"

// needLibrary skips a test if libwebp is not installed. The test fails instead where
// NOETHER_TESTDATA is set, since such a machine has all that tests need.
func needLibrary(t testing.TB) {
	t.Helper()
	_, err := Find()
	testdata.NeedLibrary(t, "libwebp", Hint(), err)
}

// read returns the content of a file, and the size of its image.
func read(t testing.TB, name string) (data []byte, size image.Config) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if size, _, err = image.DecodeConfig(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return data, size
}

// stills returns the paths of the WebP images that are no animations.
func stills(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(images, "*.webp"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "animated")
	})
	if len(paths) < 2 {
		t.Fatalf("%d images", len(paths))
	}
	return paths
}

// TestEqualsPIL checks that Decode returns exactly the pixels of PIL (Pillow). NAME.rgb.png holds
// the pixels that PIL decodes from NAME.
func TestEqualsPIL(t *testing.T) {
	t.Parallel()
	needLibrary(t)
	for _, path := range stills(t) {
		data, size := read(t, path)
		pixels, ok := Decode(data, size.Width, size.Height)
		if !ok {
			t.Errorf("%s is not decoded", path)
			continue
		}
		reference, _ := os.ReadFile(path + ".rgb.png")
		want, _, err := image.Decode(bytes.NewReader(reference))
		if err != nil {
			t.Fatal(err)
		}
		for i := range size.Width * size.Height {
			r, g, b, _ := want.At(i%size.Width, i/size.Width).RGBA()
			if p := pixels[3*i:][:3]; p[0] != uint8(r>>8) || p[1] != uint8(g>>8) || p[2] != uint8(b>>8) {
				t.Errorf("%s: pixel %d is %v, want %d %d %d", path, i, p, r>>8, g>>8, b>>8)
				break
			}
		}
	}
}

// TestNotDecoded checks that Decode returns nothing for damaged data and for images of another size
// than the given one.
func TestNotDecoded(t *testing.T) {
	t.Parallel()
	needLibrary(t)
	path := stills(t)[0]
	data, size := read(t, path)
	if !decodes(data, size.Width, size.Height) {
		t.Errorf("%s is not decoded with its own size", path)
	}
	animation, canvas := read(t, filepath.Join(images, "animated.webp"))
	for name, ok := range map[string]bool{
		"truncated":     decodes(data[:len(data)/2], size.Width, size.Height),
		"lower width":   decodes(data, size.Width-1, size.Height),
		"larger height": decodes(data, size.Width, size.Height+1),
		"no data":       decodes(nil, size.Width, size.Height),
		"size zero":     decodes(data, 0, 0),
		"animation":     decodes(animation, canvas.Width, canvas.Height),
	} {
		if ok {
			t.Errorf("%s: decoded", name)
		}
	}
}

// decodes reports whether Decode returns an image.
func decodes(data []byte, width, height int) bool {
	_, ok := Decode(data, width, height)
	return ok
}
