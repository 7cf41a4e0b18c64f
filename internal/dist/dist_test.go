package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/noether-ml/noether/internal/testdata"
)

// TestGlibcWith checks N of the oldest glibc 2.N whose systems have a version of symbols; 0: all
// have it.
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

// TestWriteWheel checks the files of a wheel, and that the program alone is executable. Of the
// folder m, the Python module, note.txt is left out. share holds manual pages.
func TestWriteWheel(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{"m/__init__.py": "x = 1\n", "m/py.typed": "", "m/note.txt": "no", "README.md": "# A", "LICENSE": "l", "program": "p", "share/man/man1/a.1": ".TH"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	about := project{Name: "noether-ml", Scripts: map[string]string{"noether": "noether_ml.__main__:main"}, Optional: map[string][]string{"torch": {"torch"}}}
	w := wheel{project: about, tag: "py3-none-any", module: at("m"), readme: at("README.md"), licence: at("LICENSE"),
		bundle: bundle{version: "1.2.3", binaries: map[string]string{"noether": at("program")}, share: at("share"), notices: []byte("n"), sbom: []byte("{}")}}
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
		if executable := f.Mode()&0o111 != 0; executable != (f.Name == "noether_ml/bin/noether") {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	const info, data = "noether_ml-1.2.3.dist-info/", "noether_ml-1.2.3.data/data/"
	want := []string{data + "share/man/man1/a.1", info + "METADATA", info + "WHEEL", info + "entry_points.txt",
		info + "licenses/LICENSE", info + "licenses/LICENSE-onnxruntime", info + "licenses/THIRD_PARTY_NOTICES", info + "sboms/noether.cdx.json",
		"noether_ml/__init__.py", "noether_ml/bin/noether", "noether_ml/py.typed", info + "RECORD"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}

// TestFindJPEG finds libjpeg-turbo of this system for packages for it, with its version and licence,
// and none for another system or for an older glibc than the library needs.
func TestFindJPEG(t *testing.T) {
	t.Parallel()
	here := target{os: runtime.GOOS, arch: runtime.GOARCH}
	found, err := findJPEG(here, 99)
	if runtime.GOOS == "linux" {
		testdata.NeedLibrary(t, "libjpeg-turbo with its licence", "apt-get install libturbojpeg0", err)
		if found.part.version == "" || !bytes.Contains(found.part.text, []byte("Independent JPEG Group")) {
			t.Errorf("version %q, licence %.100q", found.part.version, found.part.text)
		}
		if _, err := findJPEG(here, 2); err == nil {
			t.Error("no error for an old glibc")
		}
	}
	if _, err := findJPEG(target{os: "windows", arch: "amd64"}, 99); err == nil {
		t.Error("no error for another system")
	}
}

// TestParts lists the parts (third-party software) in a folder of npm packages, without vite, which
// only development needs, and checks their licence notices and their software bill of materials.
func TestParts(t *testing.T) {
	t.Parallel()
	web := t.TempDir()
	files := map[string]string{
		"package-lock.json": `{"packages": {"": {}, "node_modules/vite": {"version": "8.0.0", "dev": true},
			"node_modules/vega": {"version": "6.4.0", "license": "BSD-3-Clause"}, "node_modules/vega/node_modules/@d3/a": {"version": "1.0.0", "license": "ISC"}}}`,
		"node_modules/vega/LICENSE":                      "Copyright of Vega",
		"node_modules/vega/index.js":                     "code",
		"node_modules/vega/node_modules/@d3/a/x.js":      "",
		"node_modules/vega/node_modules/@d3/a/NOTICE.md": "Notice of a",
	}
	for name, text := range files {
		path := filepath.Join(web, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := npmPackages(web)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d packages, want 2; error %v", len(all), err)
	}
	notices, err := all.notices()
	if err != nil || !strings.Contains(string(notices), "vega 6.4.0\n\nCopyright of Vega\n") || !strings.Contains(string(notices), "Notice of a") || strings.Contains(string(notices), "code") {
		t.Errorf("the notices are %s, error %v; want both licences and no code", notices, err)
	}
	raw, err := all.sbom("1.2.3")
	var bom cdx.BOM
	if err == nil {
		err = cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(&bom)
	}
	if err != nil {
		t.Fatal(err)
	}
	var purls []string
	for _, c := range *bom.Components {
		purls = append(purls, c.PackageURL)
	}
	slices.Sort(purls)
	if want := []string{"pkg:npm/%40d3/a@1.0.0", "pkg:npm/vega@6.4.0"}; !slices.Equal(purls, want) || bom.Metadata.Component.Version != "1.2.3" {
		t.Errorf("the list of %v has %q, want %q of version 1.2.3", bom.Metadata.Component, purls, want)
	}
	if _, err := (parts{{name: "a", folder: t.TempDir()}}).notices(); err == nil {
		t.Error("no error for a part without a licence")
	}
}

// TestSourceDistribution checks that the source distribution has the backend that builds it, which
// says in one line what it needs, and no tests.
func TestSourceDistribution(t *testing.T) {
	t.Chdir("../..")
	p, err := readProject("python/pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	path, err := writeSource(t.TempDir(), p, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(header.Name, "noether_ml-1.2.3/")] = string(text)
		if strings.HasSuffix(header.Name, "_test.go") || strings.Contains(header.Name, "/testdata/") {
			t.Errorf("%s is in the source distribution", header.Name)
		}
	}
	if s := found["pyproject.toml"]; !strings.Contains(s, `build-backend = "noether_build"`) || strings.Contains(s, "setuptools.build_meta") || !strings.Contains(s, `name = "noether-ml"`) {
		t.Errorf("pyproject.toml is %s", s)
	}
	for _, name := range []string{"PKG-INFO", "LICENSE", "go.mod", "cmd/noether/main.go", "python/sdist/noether_build.py", "internal/demo/plain.onnx", "internal/runtime/package-lock.json"} {
		if found[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	t.Logf("%d bytes, %d files", len(raw), len(found))
}
