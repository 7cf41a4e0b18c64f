package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3+dirty": "1.2.3", "(devel)": "0.0.0.dev0", "": "0.0.0.dev0",
		"v0.0.0-20261122211850-e7550aa1ad19":         "0.0.0.dev20261122211850+ge7550aa1ad19",
		"v0.2.1-0.20261122211850-e7550aa1ad19+dirty": "0.2.1.dev20261122211850+ge7550aa1ad19",
	} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

func TestGlibcWith(t *testing.T) {
	t.Parallel()
	for symbols, want := range map[string]int{
		"GLIBC_2.34": 34, "GLIBC_2.2.5": 2, "GLIBCXX_3.4": 0, "GLIBCXX_3.4.22": 24, "GLIBCXX_3.4.30": 35, "CXXABI_1.3.9": 24, "GCC_3.0": 0, "": 0,
	} {
		if got, err := glibcWith(symbols); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", symbols, got, err, want)
		}
	}
	if _, err := glibcWith("GLIBCXX_3.4.99"); err == nil {
		t.Error("no error for unknown symbols")
	}
}

func TestWriteWheel(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{"m/__init__.py": "x = 1\n", "m/py.typed": "", "m/note.txt": "no", "README.md": "# A", "LICENSE": "l", "program": "p"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	w := wheel{version: "1.2.3", tag: "py3-none-any", module: at("m"), readme: at("README.md"), licence: at("LICENSE"),
		binaries: map[string]string{"noether": at("program")}}
	path, err := writeWheel(at("dist"), w)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
		if executable := f.Mode()&0o111 != 0; executable != (f.Name == "noether/bin/noether") {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	want := []string{"noether-1.2.3.dist-info/LICENSE", "noether-1.2.3.dist-info/LICENSE-onnxruntime", "noether-1.2.3.dist-info/METADATA",
		"noether-1.2.3.dist-info/WHEEL", "noether-1.2.3.dist-info/entry_points.txt", "noether/__init__.py", "noether/bin/noether", "noether/py.typed",
		"noether-1.2.3.dist-info/RECORD"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}
