package spec

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemplateQuotes checks that Template, which writes a study file for a model and data, quotes
// names and paths such that Parse reads the same ones, whatever characters they have.
func TestTemplateQuotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"plain", "data #2", "a: b", `"quoted"`, "it's", "true", "False", "null", "no", "12", "-", "a\\b", "{a}", "[a]", "*a", "&a", "a, b", "é", " a ", "#", "%TAG", "@a", "a\nb",
	} {
		text, err := Template(TemplateInfo{
			Name: name, Model: name + "/" + name + ".onnx", Data: name, LocalData: dir, Channels: 3, Classes: 10, Preprocess: name, PreprocessIsFile: true,
			Layers: []TemplateLayer{{name, "first"}}, Labels: []string{name, "b"}, UnknownOutputs: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse("study.yaml", []byte(text), nil)
		if err != nil {
			t.Errorf("%q: %v\n%s", name, err, text)
			continue
		}
		data, model := s.Data[0], s.Models[0]
		if s.Name != name || data.Name != NameOf(name) || data.Images == nil || data.Images.Folder.text != name || model.Name != name || model.ONNX.text != name+"/"+name+".onnx" {
			t.Errorf("%q: the names in the study differ:\n%s", name, text)
		}
	}
}

// TestTemplateComments checks the comments that depend on the data: which of the model's outputs
// each label is, if that is unknown, and which samples come first.
func TestTemplateComments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		labels    []string // of the data
		has, lack string   // texts that the section data must have, and must not have
	}{
		{[]string{"cat", "dog"}, "in order: cat, dog\n", "..."},
		{[]string{"cat", "dog", "a: b", "cow"}, `in order: cat, dog, "a: b", ...` + "\n", "cow"},
		{nil, "the first samples by name\n", "limit: 1000"},
	} {
		text, err := Template(TemplateInfo{Name: "s", Model: "m.onnx", Data: "d", LocalData: dir, Classes: 1000, Labels: c.labels, UnknownOutputs: c.labels != nil, Limit: 70, Preprocess: "none"})
		if err != nil {
			t.Fatal(err)
		}
		_, data, _ := strings.Cut(text, "\ndata:\n")
		data, _, _ = strings.Cut(data, "\nmodels:\n")
		if !strings.Contains(data, c.has) || strings.Contains(data, c.lack) {
			t.Errorf("%v: want %q and no %q in\n%s", c.labels, c.has, c.lack, data)
		}
	}
}

// TestGuessKind checks the kind of data that the files of a folder suggest, and that of single
// files. Names have brackets because these are special in glob patterns.
func TestGuessKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, want := range map[string]string{
		"a[1]/data_batch_1.bin": "cifar10", "b[1]/test.bin": "cifar100", "c[x]/x-idx3-ubyte": "idx", "d[-]/a.parquet": "parquet", "e[]/a.tar": "webdataset", "f/a.png": "images",
	} {
		folder := filepath.Join(dir, filepath.Dir(name))
		writeEmpty(t, folder, filepath.Base(name))
		if got, err := guessKind(folder); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"x-images-idx3-ubyte.gz": "idx", "x.gz": "idx", "a.npz": "arrays", "a.tar": "webdataset",
		"a.tar.gz": "holds no data that Noether can read; give a folder", "a.tgz": "holds no data", "a.zip": "holds no data", "a.txt": "holds no data",
		"a.mat": "is an HDF5 or MATLAB file, which is not read: save its arrays", "a.onnx": "give the model first, then the data",
	} {
		writeEmpty(t, dir, name)
		got, err := guessKind(filepath.Join(dir, name))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
	if _, err := UnpackedData(t.Context(), filepath.Join(dir, "photo")); err == nil || !strings.HasSuffix(err.Error(), "photo: no such file or folder") {
		t.Errorf("a path without a file: error %v", err)
	}
}

// writeEmpty writes an empty file into a folder, which it makes if necessary.
func writeEmpty(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOpenPathOfArchive opens a tar.gz of two images in folders of their classes, and one of a tar
// file: a shard of a WebDataset, which OpenPath does not unpack.
func TestOpenPathOfArchive(t *testing.T) {
	t.Setenv("NOETHER_CACHE", t.TempDir())
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	archive := func(name, content string, members ...string) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		for _, m := range members {
			err := w.WriteHeader(&tar.Header{Name: m, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
			if err == nil {
				_, err = w.Write([]byte(content))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), name)
		w.Close()
		z.Close()
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	src, err := OpenPath(t.Context(), archive("data.tar.gz", picture.String(), "photos/cat/a.png", "photos/dog/b.png"))
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 2 || fmt.Sprint(src.Classes()) != "[cat dog]" {
		t.Errorf("%d images of the classes %v, want 2 of cat and dog", src.Len(), src.Classes())
	}
	_, err = OpenPath(t.Context(), archive("shards.TGZ", "", "a.tar"))
	if err == nil || !strings.Contains(err.Error(), "unpack it and give the folder") {
		t.Errorf("an archive of a shard: error %v, want advice to unpack it", err)
	}
}
