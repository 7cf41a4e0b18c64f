package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/release"
)

//go:embed onnxruntime-LICENSE.txt
var runtimeLicence []byte

// A wheel is the content of a Python wheel.
type wheel struct {
	bundle
	project                 project
	tag                     string // Python's compatibility tag, such as py3-none-win_amd64
	module, readme, licence string // the folder of the module, and files
}

// A member is a file of a wheel or of a release's archive.
type member struct {
	content    []byte
	executable bool
}

type members map[string]member

// add adds the file at a path.
func (all members) add(name, path string, executable bool) error {
	content, err := os.ReadFile(path)
	all[name] = member{content, executable}
	return err
}

// addFolder adds the files of a folder below the path prefix. wanted gets their names with slashes,
// relative to the folder, and selects them.
func (all members) addFolder(prefix, folder string, wanted func(name string) bool) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil || !wanted(filepath.ToSlash(relative)) {
			return err
		}
		return all.add(path.Join(prefix, filepath.ToSlash(relative)), file, false)
	})
}

// writeWheel writes a wheel into a folder and returns its path. The same content makes the same
// file.
func writeWheel(folder string, w wheel) (string, error) {
	all, err := w.members()
	if err != nil {
		return "", err
	}
	var raw bytes.Buffer
	archive := zip.NewWriter(&raw)
	record := ""
	info := w.info()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		if err := add(archive, name, m); err != nil {
			return "", err
		}
		sum := sha256.Sum256(m.content)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(m.content))
	}
	record += info + "/RECORD,,\n"
	if err := add(archive, info+"/RECORD", member{content: []byte(record)}); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	file := filepath.Join(folder, release.Import+"-"+w.version+"-"+w.tag+".whl")
	return file, atomicfile.Write(file, raw.Bytes())
}

// info is the folder of a wheel's metadata.
func (w wheel) info() string { return release.Import + "-" + w.version + ".dist-info" }

// members returns all files of a wheel but RECORD, by name.
func (w wheel) members() (members, error) {
	info := w.info()
	licences := members{"LICENSE-onnxruntime": {content: runtimeLicence}, "THIRD_PARTY_NOTICES": {content: w.notices}}
	err := licences.add("LICENSE", w.licence, false)
	all := members{
		info + "/sboms/noether.cdx.json": {content: w.sbom},
		info + "/WHEEL":                  {content: fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: noether\nRoot-Is-Purelib: false\nTag: %s\n", w.tag)},
		info + "/entry_points.txt":       {content: w.project.entryPoints()},
	}
	for name, m := range licences {
		all[info+"/licenses/"+name] = m
	}
	err = errors.Join(err, all.addFolder(release.Import, w.module, func(name string) bool { return strings.HasSuffix(name, ".py") || path.Base(name) == "py.typed" }),
		all.addFolder(release.Import+"-"+w.version+".data/data/share", w.share, func(string) bool { return true }))
	for name, file := range w.binaries {
		err = errors.Join(err, all.add(release.Import+"/bin/"+name, file, true))
	}
	err = errors.Join(err, all.add(info+"/METADATA", w.readme, false))
	fields := w.project.metadata(w.version, slices.Sorted(maps.Keys(licences)))
	all[info+"/METADATA"] = member{content: append(fields, all[info+"/METADATA"].content...)}
	return all, err
}

// add writes a file into an archive, with a constant time, so that equal contents give equal files.
func add(archive *zip.Writer, name string, m member) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o644)
	if m.executable {
		header.SetMode(0o755)
	}
	f, err := archive.CreateHeader(header)
	if err == nil {
		_, err = f.Write(m.content)
	}
	return err
}
