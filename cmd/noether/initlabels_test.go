package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestInitFindsLabels checks that the study that init writes names a table of labels in a folder
// whose folders are no classes, that it runs untouched, and that other tables are told.
func TestInitFindsLabels(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.Write(t, dir, "net", testmodel.Options{})
	rows := func(header, extension string) string {
		text := header + "\n"
		for i := range 12 {
			text += fmt.Sprintf("%02d%s,%d\n", i, extension, i%2)
		}
		return text
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // in the study
		note  string
	}{
		"labels":         {map[string]string{"labels.csv": rows("file,label", ".png"), "other.csv": "a,b\n"}, "/labels/labels.csv}", ""},
		"hugging-face":   {map[string]string{"metadata.csv": rows("file_name,label", ".png")}, "/hugging-face/metadata.csv}", ""},
		"the-only-table": {map[string]string{"train v2.csv": rows("Image,Class", ".png")}, `/the-only-table/train v2.csv"}`, ""},
		"factors":        {map[string]string{"metadata.csv": rows("file,site", ".png")}, "/factors/metadata.csv}", ""},
		"several":        {map[string]string{"a.csv": rows("file,label", ".png"), "b.csv": rows("file,label", ".png")}, "/several\n", ""},
		"of-other-files": {map[string]string{"labels.csv": "file,label\nmissing.png,1\n"}, "/of-other-files\n", "no labels: opening folder"},
		"no-table":       {map[string]string{"notes.csv": "speed,mass\n1,2\n"}, "/no-table\n", "no column file in the header"},
	} {
		for i := range 12 {
			var file bytes.Buffer
			img := image.NewRGBA(image.Rect(0, 0, 16, 16))
			for p := range 256 {
				img.Set(p%16, p/16, color.RGBA{uint8(p * i), uint8(p), uint8(20 * i), 255})
			}
			if err := png.Encode(&file, img); err != nil {
				t.Fatal(err)
			}
			write(t, dir, filepath.Join(name, fmt.Sprintf("%02d.png", i)), file.Bytes())
		}
		for table, text := range c.files {
			write(t, dir, filepath.Join(name, table), []byte(text))
		}
		t.Run(name, func(t *testing.T) {
			runsWith(t, model, filepath.Join(dir, name), c.want, c.note)
		})
	}
	wave := make([]float32, 4000)
	for k := range wave {
		wave[k] = float32(k%20) / 40
	}
	for i := range 12 {
		var file bytes.Buffer
		if err := audio.WriteWAV(&file, audio.Clip{Rate: 4000, Wave: wave}); err != nil {
			t.Fatal(err)
		}
		write(t, dir, filepath.Join("sound", fmt.Sprintf("%02d.wav", i)), file.Bytes())
	}
	write(t, dir, filepath.Join("sound", "labels.csv"), []byte(rows("sound,label", ".wav")))
	b := onnx.NewBuilder(17)
	b.Output("y", b.Softmax(b.MatMul(b.Input("x", onnx.Float, -1, 4000), b.Full(0.1, 4000, 2)), 1))
	listener := testmodel.Save(t, filepath.Join(dir, "listener.onnx"), b)
	runsWith(t, listener, filepath.Join(dir, "sound"), "/sound/labels.csv\n", "")
}

// runsWith checks that init writes a study for a folder with a text, with a note on the way, and that
// it runs; with labels, to accuracies.
func runsWith(t *testing.T, model, folder, want, note string) {
	t.Helper()
	study := folder + ".yaml"
	message, code := errorOutput(t, "init", model, folder, "-o", study)
	if code != 0 || !strings.Contains(message, note) || note == "" && strings.Contains(message, "no labels") {
		t.Fatalf("exit code %d, want the note %q: %s", code, note, message)
	}
	text, err := os.ReadFile(study)
	if err != nil || !strings.Contains(string(text), want) {
		t.Fatalf("the study lacks %q (%v):\n%s", want, err, text)
	}
	run := folder + "-run"
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	accuracies := 0
	for _, r := range readScores(t, run) {
		if r.Measure == "accuracy" {
			accuracies++
		}
	}
	if labelled := strings.Contains(want, ".csv") && filepath.Base(folder) != "factors"; labelled != (accuracies > 0) {
		t.Errorf("%d scores of accuracy:\n%s", accuracies, text)
	}
}
