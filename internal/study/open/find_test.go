package open_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// zippedImages returns a zip archive of a folder with images of two classes.
func zippedImages(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range 24 {
		f, err := w.Create(fmt.Sprintf("photos/%d/%02d.png", i%2, i))
		if err != nil {
			t.Fatal(err)
		}
		m := image.NewRGBA(image.Rect(0, 0, 16, 16))
		for j := range 256 {
			m.Set(j%16, j/16, color.RGBA{uint8(i * j), uint8(i * 10), uint8(j), 255})
		}
		if err := png.Encode(f, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestModelsAndDataByURL checks that a study with URLs has the scores of one with local files, that
// its study.yaml in the run folder (the resolved study) has the same cells, which are not run
// again, and what is said of wrong URLs and hashes. A cell is one measure under one transformation
// value.
func TestModelsAndDataByURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	if err := os.WriteFile(filepath.Join(dir, "photos.zip"), zippedImages(t), 0o666); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless.onnx" { // sends zeros until the client leaves
			for w.Write(make([]byte, 1<<16)); r.Context().Err() == nil; {
				w.Write(make([]byte, 1<<16))
			}
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	// The arguments are a folder or an address, and what follows the names of its files.
	const text = `name: urls
data: [{name: photos, images: %[1]s/photos.zip%[2]s}]
models: [{name: small, onnx: %[1]s/small.onnx%[2]s, layers: [conv]}]
transforms: [{rotate: 90}]
measures: [distance]
`
	o := studytest.Options(t)
	o.Downloads = &fetch.Cache{Dir: filepath.Join(dir, "cache"), Client: server.Client(), MaxFile: 1 << 20, Retries: 1, Pause: time.Millisecond}
	parse := func(text string) *study.Study { return studytest.Parse(t, dir, text) }
	want := studytest.Run(t, parse(fmt.Sprintf(text, dir, "")), filepath.Join(dir, "local"), o) // the archive is a local file here
	out := filepath.Join(dir, "remote")
	got := studytest.Run(t, parse(fmt.Sprintf(text, server.URL, "?key=secret")), out, o)
	studytest.SameScores(t, want.Rows, got.Rows, 0)
	if r := got.Record.Models[0]; r.Path != server.URL+"/small.onnx" || r.SHA256 != want.Record.Models[0].SHA256 {
		t.Errorf("the record of the model is %+v", r)
	}
	if want.Record.Data[0].Fingerprint != got.Record.Data[0].Fingerprint {
		t.Error("the samples have a different fingerprint") // a hash of all samples
	}
	server.CloseClientConnections()
	resolved, err := os.ReadFile(filepath.Join(out, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	again := parse(string(resolved))
	o.Progress = func(p study.Progress) { t.Errorf("the resolved study runs %s again", p.Model) }
	studytest.Run(t, again, out, o)

	o.Progress = nil
	sum := strings.Repeat("0", 64) // the SHA-256 of none of the files
	for name, c := range map[string][2]string{
		"endless model":                    {strings.Replace(fmt.Sprintf(text, server.URL, ""), "small.onnx", "endless.onnx", 1), "exceeds the bound"},
		"unknown model":                    {strings.Replace(fmt.Sprintf(text, server.URL, ""), "small.onnx", "none.onnx", 1), "404"},
		"wrong SHA-256 of a model":         {strings.Replace(fmt.Sprintf(text, server.URL, ""), "small, onnx", "small, sha256: "+sum+", onnx", 1), "a different file"},
		"wrong SHA-256 of an archive":      {strings.Replace(fmt.Sprintf(text, server.URL, ""), "photos, images", "photos, sha256: "+sum+", images", 1), "a different file"},
		"folder for an archive":            {strings.Replace(fmt.Sprintf(text, server.URL, ""), "photos.zip", "photos/", 1), "names no file"},
		"wrong SHA-256 of a local archive": {strings.Replace(fmt.Sprintf(text, dir, ""), "photos, images", "photos, sha256: "+sum+", images", 1), "a different file"},
		"x for a SHA-256":                  {strings.Replace(fmt.Sprintf(text, server.URL, ""), "photos, images", "photos, sha256: x, images", 1), "is not a SHA-256"},
	} {
		_, err := study.Run(t.Context(), parse(c[0]), filepath.Join(t.TempDir(), "run"), o)
		if err == nil || !strings.Contains(err.Error(), c[1]) || !strings.Contains(err.Error(), "study.yaml:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q with its position", name, err, c[1])
		}
	}
}
