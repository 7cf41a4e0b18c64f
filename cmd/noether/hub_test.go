package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/hubtest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// hubFiles returns the files of a Hugging Face repository with a small model of eight classes.
func hubFiles(t *testing.T) map[string][]byte {
	t.Helper()
	model, err := os.ReadFile(testmodel.Write(t, t.TempDir(), "net", testmodel.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"onnx/model.onnx":          model,
		"preprocessor_config.json": []byte(`{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25], "size": {"height": 16, "width": 16}}`),
		"config.json":              []byte(`{"id2label": {"0": "ant", "1": "bee", "2": "cat", "3": "dog", "4": "elk", "5": "fox", "6": "gnu", "7": "Barn Owl"}}`),
	}
}

// hubFolder writes the files of hubFiles into the folder net of dir, and returns its path.
func hubFolder(t *testing.T, dir string) string {
	t.Helper()
	for name, data := range hubFiles(t) {
		write(t, dir, filepath.Join("net", filepath.FromSlash(name)), data)
	}
	return filepath.Join(dir, "net")
}

// twoClasses writes a folder of images of two classes, whose order is not that of the model's
// outputs. img(t, 16, i) is a grey image of 16 x 16 pixels, whose values depend on i.
func twoClasses(t *testing.T, dir string) string {
	t.Helper()
	for i := range 12 {
		write(t, dir, filepath.Join("photos", []string{"barn_owl", "cat"}[i%2], string(rune('a'+i))+".png"), img(t, 16, i))
	}
	return filepath.Join(dir, "photos")
}

// A model is read from a server that implements the Hugging Face Hub, with the preprocessing and
// the class names of its repository. The run folder (that of the results) has the resolved study,
// study.yaml with absolute paths and hashes. It names the commit, and runs again from the cache
// while the server is down.
func TestHuggingFaceModel(t *testing.T) {
	h := hubtest.New(t, hubFiles(t))
	h.Token = "secret"
	t.Setenv("HF_ENDPOINT", h.URL)
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_HUB_OFFLINE", "")
	t.Setenv("HF_TOKEN", "secret")
	dir := t.TempDir()
	data := twoClasses(t, dir)

	text, err := output(t, "inspect", "hf://org/net", "--json")
	var found inspection
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	if err != nil || found.Path != "hf://org/net" || len(found.ClassNames) != 8 || found.ClassNames[7] != "Barn Owl" ||
		found.Preprocess == nil || found.Preprocess.Std[0] != 0.25 || found.Preprocess.Crop[0] != 16 {
		t.Errorf("inspect prints %q, want the preprocessing of the repository; error %v", text, err)
	}

	study := filepath.Join(dir, "study.yaml")
	if code, message := call(t, "init", "hf://org/net", data, "-o", study); code != 0 {
		t.Fatal(message)
	}
	written, err := os.ReadFile(study)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: net\n", "onnx: hf://org/net\n", "found in preprocessor_config.json of the repository", "\n  - accuracy"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %q in\n%s", want, written)
		}
	}
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	resolved, err := os.ReadFile(filepath.Join(run, "study.yaml"))
	if err != nil || !strings.Contains(string(resolved), "onnx: hf://org/net@"+hubtest.Commit+"\n") || !strings.Contains(string(resolved), "sha256: ") {
		t.Errorf("the resolved study does not name the commit: %v\n%s", err, resolved)
	}
	h.Close()
	h.Requests() // from here on the list of requests is empty
	if code, message := call(t, "run", filepath.Join(run, "study.yaml"), "-o", run); code != 0 || len(h.Requests()) > 0 {
		t.Errorf("the resolved study does not run from the cache: %s", message)
	}
}

// TestFolderLaidOutAsOnTheHub compares the scores of a folder with the files of a Hugging Face
// repository with those of its ONNX file alone, in the folder, where its preprocessing is found,
// and elsewhere, with preprocessing and classes in the study file.
func TestFolderLaidOutAsOnTheHub(t *testing.T) {
	dir := t.TempDir()
	hubFolder(t, dir)
	write(t, dir, "plain.onnx", hubFiles(t)["onnx/model.onnx"])
	twoClasses(t, dir)
	scores := func(data, model string) string {
		study := write(t, dir, "study.yaml", []byte("name: s\ndata: [{name: photos, images: photos"+data+"}]\nmodels: [{name: m, layers: [penultimate], "+model+
			"}]\ntransforms: [{name: quarter, rotate: {values: [90]}}]\nmeasures: [accuracy, distance]\n"))
		run := filepath.Join(t.TempDir(), "run")
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
		text, err := os.ReadFile(filepath.Join(run, "scores.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := scores("", "onnx: net")
	if file := scores("", "onnx: net/onnx/model.onnx"); file != want {
		t.Errorf("the folder:\n%s\nits file:\n%s", want, file)
	}
	// The classes of the folders barn_owl and cat are the outputs 7 and 2.
	if explicit := scores(", classes: [7, 2]", "onnx: plain.onnx, preprocess: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}"); rowsOf(explicit, ",distance,") != rowsOf(want, ",distance,") {
		t.Errorf("the folder:\n%s\nwith preprocessing in the study file:\n%s", want, explicit)
	}
	if rowsOf(want, ",accuracy,") == "" {
		t.Errorf("no accuracy: the classes were not found by their names:\n%s", want)
	}
}

// rowsOf returns the lines of a table that contain a text.
func rowsOf(table, text string) string {
	var out []string
	for line := range strings.Lines(table) {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
