package open

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/onnx"
)

// writeRecorded writes an ONNX file with a text as the preprocessing in its metadata, and returns
// its path.
func writeRecorded(t *testing.T, text string) string {
	t.Helper()
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, -1, 3, 8, 8)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.WithMetadata(spec.PreprocessKey, text).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRecordedPreprocess checks that preprocessing that is written to the metadata of a model is
// read back, and used with a warning unless the study sets preprocess. Without preprocessing the
// text is "none", and there is no warning.
func TestRecordedPreprocess(t *testing.T) {
	t.Parallel()
	for _, want := range []preprocessing.Settings{
		{},
		{Frame: dataset.Frame{Resize: 40, Height: 32, Width: 32, FloorCrop: true, Channels: 3, Interpolation: "lanczos"}},
		{Frame: dataset.Frame{Height: 32, Width: 48}, Mean: []float32{0.1, 0.2, 0.3}, Std: []float32{0.25}, Order: "bgr", Range: [2]float32{0, 255}},
		{Frame: dataset.Frame{Resize: 40, Square: true, Height: 32, Width: 30}},
		{Frame: dataset.Frame{Rate: 8000, Length: 16000}, Standardise: true},
	} {
		text, ok := spec.PreprocessText(want)
		if !ok {
			t.Fatalf("%+v: no text", want)
		}
		path := writeRecorded(t, text)
		got, read, found, err := RecordedPreprocess(path)
		if err != nil || !found || read != text {
			t.Fatalf("%s: error %v, found %t, text %q; want the text that was written", text, err, found, read)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		var warnings []string
		p, err := new(Files).Preprocessing(t.Context(), spec.Model{Name: "m"}, path, func(text string) { warnings = append(warnings, text) })
		if diff := cmp.Diff(want, p); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", text, err, diff)
		}
		if (len(warnings) == 1 && strings.Contains(warnings[0], text)) == (text == "none") {
			t.Errorf("%s: warnings %q, want one with the text unless it is none", text, warnings)
		}
		// A study that sets preprocess for its model.
		given := spec.Model{Preprocess: spec.Preprocess{Settings: preprocessing.Settings{Order: "rgb"}, Given: true}}
		if p, err := new(Files).Preprocessing(t.Context(), given, path, func(text string) { t.Error(text) }); err != nil || p.Order != "rgb" {
			t.Errorf("the study's own preprocessing is %+v, error %v; want the order rgb", p, err)
		}
	}
	// A study file expresses a spectrogram otherwise.
	if _, ok := spec.PreprocessText(preprocessing.Settings{Features: new(logmel.Settings)}); ok {
		t.Error("spec.PreprocessText has keys for a spectrogram, want none")
	}
	if _, _, _, err := RecordedPreprocess(writeRecorded(t, "{resize: -3}")); err == nil || !strings.Contains(err.Error(), "metadata") {
		t.Errorf("a negative size: error %v, want one about the metadata", err)
	}
}

// TestPreprocessorConfig adds to the folder of a model one file after another. Each comes before
// those that were there.
func TestPreprocessorConfig(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	model := filepath.Join(folder, "onnx", "m.onnx")
	if err := os.Mkdir(filepath.Dir(model), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ add, text, want string }{
		{"processor_config.json", `{"processor_class": "CLIPProcessor", "image_seq_length": 7}`, ""}, // of an older version
		{"video_preprocessor_config.json", `{"video_processor_type": "VideoMAEVideoProcessor"}`, "video_preprocessor_config.json"},
		{"preprocessor_config.json", `{"image_processor_type": "ViTImageProcessor"}`, "preprocessor_config.json"},
		{"processor_config.json", `{"image_processor": {"image_processor_type": "BeitImageProcessor"}}`, "processor_config.json"},
	} {
		if err := os.WriteFile(filepath.Join(folder, step.add), []byte(step.text), 0o666); err != nil {
			t.Fatal(err)
		}
		got := PreprocessorConfig(model)
		if want := filepath.Join(folder, step.want); step.want == "" && got != "" || step.want != "" && got != want {
			t.Errorf("with %s: %q, want %q", step.add, got, step.want)
		}
		if got == "" {
			continue
		}
		if _, err := preprocessing.ReadConfig(got); err != nil {
			t.Errorf("with %s: %v", step.add, err)
		}
	}
}
