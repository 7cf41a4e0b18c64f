package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A bundle is what a wheel and a release's archive have in common.
type bundle struct {
	version       string
	binaries      map[string]string // paths of noether and ONNX Runtime, by name
	share         string            // path of a folder of manual pages and shell completions, arranged as in /usr/share
	notices, sbom []byte            // licences, and list (CycloneDX), of third-party software
}

// writeArchive writes noether-VERSION-OS-ARCH.tar.gz, with all files in a folder of that name, and
// returns its path. Equal contents give equal files.
func writeArchive(out string, t target, b bundle) (path string, err error) {
	name := "noether-" + b.version + "-" + t.os + "-" + t.arch
	all := members{
		"THIRD_PARTY_NOTICES": {content: b.notices}, "noether.cdx.json": {content: b.sbom}, "LICENSE-onnxruntime": {content: runtimeLicence},
	}
	for _, file := range []string{"LICENSE", "README.md", "docs/CHANGELOG.md"} {
		if err := all.add(filepath.Base(file), file, false); err != nil {
			return "", err
		}
	}
	for name, file := range b.binaries {
		if err := all.add(name, file, true); err != nil {
			return "", err
		}
	}
	if err := all.addFolder("share", b.share, func(string) bool { return true }); err != nil {
		return "", err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return "", err
	}
	path = filepath.Join(out, name+".tar.gz")
	return path, atomicfile.WriteFunc(path, func(w io.Writer) error { return writeMembers(w, name, all) })
}

// writeMembers writes a compressed archive of a folder with the members.
func writeMembers(w io.Writer, folder string, all members) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		m := all[file]
		header := &tar.Header{Name: folder + "/" + file, Mode: 0o644, Size: int64(len(m.content)), Format: tar.FormatPAX}
		if m.executable {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(m.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}

// writeSums writes the file SHA256SUMS, which sha256sum --check reads, and returns its path.
func writeSums(out string, files ...string) (string, error) {
	var text strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(raw), filepath.Base(file))
	}
	path := filepath.Join(out, "SHA256SUMS")
	return path, atomicfile.Write(path, []byte(text.String()))
}
