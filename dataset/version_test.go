package dataset

import (
	"os"
	"testing"

	"github.com/noether-ml/noether/transform"
)

// TestVersionsAreInFingerprints checks that a fingerprint (a hash of the samples of a source)
// depends on the versions of the decoder and the corruption, numbers that increase when their
// results change. Sources whose decoder and corruption still have version 1 keep the fingerprint
// from before versions existed, so that earlier results stay valid. The others have a new one. That
// of the folder of JPEG images is of the time since which fingerprints cover whole files.
func TestVersionsAreInFingerprints(t *testing.T) {
	t.Parallel()
	shapes, err := OpenShapes(ShapesOptions{N: 6, Size: 16, Channels: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	corrupted := func(kind string) Source {
		// Severity 3; seed 1 and name a determine the random numbers.
		return Corrupt(shapes, transform.Corrupt{Kind: kind, Severity: transform.Fixed(3)}, 1, "a")
	}
	folder := func(name string) Source {
		raw, err := os.ReadFile("testdata/images/" + name)
		if err != nil {
			t.Fatal(err)
		}
		src, err := OpenFolder(t.Context(), FolderOptions{Dir: folderOf(t, map[string][]byte{name: raw})})
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	for _, c := range []struct {
		name      string
		source    Source
		old       string // the fingerprint from before versions existed
		unchanged bool   // whether the source still has it
	}{
		{"gaussian-noise", corrupted("gaussian-noise"), "c29dbecb9f694fc27c6564d6a83587e6efb89551d7ee82e1274a23dbe31838f8", true},
		{"jpeg-compression", corrupted("jpeg-compression"), "3bee021e007a79da2b499fc2bbbbbe7aa27ab1120bf38a071b6c7435b1ed2036", false},
		{"JPEG", folder("444.jpg"), "734a4240b6aadd83326a51a0225ce972ae59443cf4d18320999cb0727e95c8ce", true},
		{"WebP", folder("lossy.webp"), "f702915264ac7fb8292f76437d024d4bb133b4f18df6ab8aed710ff2aaa32c2d", false},
	} {
		if got := c.source.Fingerprint(); (got == c.old) != c.unchanged {
			t.Errorf("%s: fingerprint %s, before versions %s; unchanged must be %t", c.name, got, c.old, c.unchanged)
		}
	}
}
