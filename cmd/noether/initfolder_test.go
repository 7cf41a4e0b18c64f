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
		writePictures(t, filepath.Join(dir, name), 12, 16, 16)
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

// writePictures writes n different images, 00.png and so on.
func writePictures(t *testing.T, dir string, n, width, height int) {
	t.Helper()
	for i := range n {
		var file bytes.Buffer
		img := image.NewRGBA(image.Rect(0, 0, width, height))
		for p := range width * height {
			img.Set(p%width, p/width, color.RGBA{uint8(p * i), uint8(p), uint8(20 * i), 255})
		}
		if err := png.Encode(&file, img); err != nil {
			t.Fatal(err)
		}
		write(t, dir, fmt.Sprintf("%02d.png", i), file.Bytes())
	}
}

// TestInitFindsASize checks that init finds a size that a model of free size takes, that its study
// runs, and that an error that has nothing to do with the size is told.
func TestInitFindsASize(t *testing.T) {
	dir := t.TempDir()
	writePictures(t, filepath.Join(dir, "pictures"), 4, 40, 30)
	for name, c := range map[string]struct {
		rows, columns int // into which the pixels must go
		want          string
	}{
		"any":             {-1, 1, "preprocess: none"},
		"multiples of 32": {-1, 64, "preprocess: {resize: 64, crop: [32, 64]}"},
		"lines of text":   {48, 320, "preprocess: {crop: [48, 320], mean: 0.5, std: 0.5}"},
	} {
		b := onnx.NewBuilder(17)
		x := b.Reshape(b.Input("x", onnx.Float, -1, 3, -1, -1), 0, 3, c.rows, c.columns)
		b.Output("y", b.Relu(b.ReduceMean(x, false, 2, 3)))
		model := testmodel.Save(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".onnx"), b)
		study := model + ".yaml"
		if code, message := call(t, "init", model, filepath.Join(dir, "pictures"), "-o", study); code != 0 {
			t.Errorf("%s: %s", name, message)
			continue
		}
		if text, err := os.ReadFile(study); err != nil || !strings.Contains(string(text), c.want+"\n") {
			t.Errorf("%s: the study lacks %q (%v):\n%s", name, c.want, err, text)
		}
		if code, message := call(t, "run", study, "-o", model+"-run"); code != 0 {
			t.Errorf("%s: %s", name, message)
		}
	}
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Reshape(b.Input("x", onnx.Float, -1, 3, -1, -1), 0, 7, 11, 13)))
	model := testmodel.Save(t, filepath.Join(dir, "none.onnx"), b)
	if code, message := call(t, "init", model, filepath.Join(dir, "pictures")); code != 1 || !strings.Contains(message, "a run on zeros of 1 x 3 x 30 x 40 failed") {
		t.Errorf("exit code %d: %s", code, message)
	}
}
