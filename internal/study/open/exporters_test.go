package open

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
)

// TestUltralytics checks the preprocessing that follows from the metadata that Ultralytics writes.
func TestUltralytics(t *testing.T) {
	t.Parallel()
	box := func(h, w, c int) dataset.Frame {
		return dataset.Frame{Height: h, Width: w, Channels: c, Letterbox: true, Fill: preprocessing.LetterboxFill}
	}
	for name, c := range map[string]struct {
		metadata map[string]string
		want     dataset.Frame
		text     string
		err      string
	}{
		"a detector":         {map[string]string{"task": "detect", "imgsz": "[640, 640]", "stride": "32", "names": "{0: 'a'}"}, box(640, 640, 0), "{letterbox: 640}", ""},
		"not square, grey":   {map[string]string{"task": "pose", "imgsz": "[384, 640]", "stride": "32", "channels": "1"}, box(384, 640, 1), "{letterbox: [384, 640], channels: 1}", ""},
		"a classifier":       {map[string]string{"task": "classify", "imgsz": "[224, 224]", "stride": "1", "channels": "3"}, dataset.Frame{Resize: 224, Height: 224, Width: 224, Channels: 3}, "{resize: 224, crop: 224, channels: 3}", ""},
		"another's metadata": {map[string]string{"task": "detect", "names": "{0: 'a'}"}, dataset.Frame{}, "", ""},
		"no size":            {map[string]string{"task": "detect", "imgsz": "large", "stride": "32"}, dataset.Frame{}, "", `imgsz in the metadata of`},
	} {
		b := onnx.NewBuilder(17)
		b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, 8, 8)))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range c.metadata {
			m = m.WithMetadata(key, value)
		}
		data, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		got, text, found, err := RecordedPreprocess(path)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil || found != (c.text != "") || text != c.text {
			t.Errorf("%s: %q, found %t, error %v; want %q", name, text, found, err, c.text)
		}
		if diff := cmp.Diff(preprocessing.Settings{Frame: c.want}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
